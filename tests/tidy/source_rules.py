"""Rules that a compiler does not check, as a program: layering of includes, what must not be called
where, and the shape of files.

usage: source_rules.py ROOT

Prints each violation as PATH:LINE: RULE: what is wrong, and ends with 1 if there is any.
source_rules_test.py shows each rule failing on a tree that breaks it.
"""

import pathlib
import re
import sys

FOLDERS = ("client", "deploy", "proto", "server", "tests", ".ci")
CODE = (".cc", ".h")
TEXT = CODE + (".proto", ".py", ".sh", ".cmake", ".txt", ".in", ".md", ".yaml", ".json")
FILE_LINES_MAX = 500
COLUMNS_MAX = 100

# What a layer of the server may include of the others. An entry is a layer or one header.
STORE_INTERFACE = ("server/store/manifest_store.h", "server/store/shard_key.h")
LAYERS = {
    "base": (),
    "store": ("base",),
    "arbiter": ("base",) + STORE_INTERFACE,
    "rpc": ("base", "arbiter") + STORE_INTERFACE,
    "process": ("base", "store", "arbiter", "rpc"),
}
# The pure part of the arbiter: no I/O, no clock, no threads.
PURE = re.compile(r"server/arbiter/(rules|errors|invariants)(_\w+)?\.(h|cc)$")
PURE_OURS = re.compile(r"server/arbiter/(rules|errors|invariants)(_\w+)?\.h$"
                       r"|server/base/(text|uuid)\.h$|server/store/shard_key\.h$")
PURE_SYSTEM = {
    "algorithm", "array", "cstddef", "cstdint", "functional", "initializer_list", "iterator",
    "limits", "map", "memory", "optional", "set", "string", "tuple", "type_traits",
    "unordered_map", "unordered_set", "utility", "variant", "vector",
}
PURE_ABSL = ("absl/algorithm/", "absl/container/", "absl/functional/", "absl/status/",
             "absl/strings/", "absl/time/time.h", "absl/types/", "absl/base/attributes.h",
             "absl/numeric/")

COMMENT_OR_STRING = re.compile(
    r'R"(?P<delimiter>\w*)\(.*?\)(?P=delimiter)"'
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'(?:\\.|[^'\\\n]){1,4}'"
    r"|(?P<comment>//[^\n]*|/\*.*?\*/)", re.DOTALL)


def without_comments(text):
    """C++ text with each comment gone and each line where it was."""
    def replace(match):
        if match.group("comment") is None:
            return match.group(0)
        return "\n" * match.group(0).count("\n")
    return COMMENT_OR_STRING.sub(replace, text)


class File:
    """One file of the tree."""

    def __init__(self, path, text):
        self.path = path
        self.text = text
        self.suffix = pathlib.PurePosixPath(path).suffix
        self.name = pathlib.PurePosixPath(path).name
        self.code = without_comments(text) if self.suffix in CODE else text

    def below(self, *folders):
        return any(self.path.startswith(folder + "/") for folder in folders)

    def includes(self):
        """Yields (line, header) of each #include."""
        for match in re.finditer(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', self.code, re.MULTILINE):
            yield self.line_of(match.start(1)), match.group(1)

    def find(self, pattern, text=None):
        """Yields (line, match) of each match in the code, or in 'text'."""
        for match in re.finditer(pattern, self.code if text is None else text):
            yield self.line_of(match.start(), text), match

    def line_of(self, offset, text=None):
        return (self.code if text is None else text).count("\n", 0, offset) + 1


def load(root):
    """The files that the rules are about, by their path below 'root'."""
    files = []
    for path in sorted(root.iterdir()):
        if path.is_file() and (path.suffix in TEXT):
            files.append(path)
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            relative = path.relative_to(root).as_posix()
            chosen = path.suffix in TEXT or relative == ".ci/run"
            if chosen and path.is_file() and not relative.startswith("tests/data/"):
                files.append(path)
    return [File(path.relative_to(root).as_posix(), path.read_text(encoding="utf-8"))
            for path in files]


RULES = {}


def rule(function):
    """Registers a rule: a function of all files that yields (file, line, what is wrong)."""
    RULES[function.__name__.replace("_", "-")] = function
    return function


def code_files(files, *folders):
    return [file for file in files if file.suffix in CODE and file.below(*folders)]


def unwanted(files, pattern, message):
    for file in files:
        for line, match in file.find(pattern):
            yield file, line, f"{match.group(0).strip()}: {message}"


@rule
def layering(files):
    for file in code_files(files, "server"):
        layer = file.path.split("/")[1]
        allowed = LAYERS.get(layer)
        if allowed is None:
            yield file, 1, f"server/{layer} is no layer; the layers are {', '.join(LAYERS)}"
            continue
        for line, header in file.includes():
            if header.startswith(("client/", "tests/")) or header.startswith("claimd/ctl"):
                yield file, line, f"the server must not include {header}"
            if not header.startswith("server/"):
                continue
            other = header.split("/")[1]
            if other != layer and other not in allowed and header not in allowed:
                yield file, line, f"server/{layer} must not include {header}"


@rule
def base_has_no_domain_words(files):
    for file in code_files(files, "server/base"):
        for line, header in file.includes():
            if header.endswith(".pb.h"):
                yield file, line, f"server/base must not include {header}"


@rule
def rules_are_pure(files):
    for file in code_files(files, "server/arbiter"):
        if not PURE.match(file.path):
            continue
        for line, header in file.includes():
            ours = header.startswith("server/")
            if ours and PURE_OURS.match(header):
                continue
            if header.startswith(("google/", "claimd/")) and not ours:
                continue
            if header in PURE_SYSTEM or header.startswith(PURE_ABSL):
                continue
            yield file, line, f"the pure part of the arbiter must not include {header}"


@rule
def only_rpc_and_process_know_grpc(files):
    for file in code_files(files, "server/base", "server/store", "server/arbiter"):
        for line, header in file.includes():
            if header.startswith(("grpc/", "grpcpp/")) or header.endswith(".grpc.pb.h"):
                yield file, line, f"must not include {header}"


@rule
def client_knows_no_server(files):
    for file in code_files(files, "client"):
        for line, header in file.includes():
            if header.startswith(("server/", "claimd/storage/", "tests/")):
                yield file, line, f"the client must not include {header}"


@rule
def public_headers_are_plain(files):
    for file in code_files(files, "client/include"):
        for line, header in file.includes():
            if header.startswith(("grpc", "google/", "glog/", "client/")) or \
                    header.endswith(".pb.h"):
                yield file, line, f"a public header must not include {header}"
        for line, match in file.find(r"std::string_view|absl::string_view"):
            yield file, line, f"{match.group(0)}: public headers take const std::string&"


@rule
def e2e_tests_use_the_wire_only(files):
    for file in code_files(files, "tests/e2e"):
        for line, header in file.includes():
            if header.startswith(("server/arbiter/", "server/store/", "server/rpc/",
                                  "server/process/")):
                yield file, line, f"an end-to-end test must not include {header}"


@rule
def no_absl_mutex(files):
    yield from unwanted(code_files(files, "server", "client", "tests"),
                        r"absl::(Mutex|CondVar|ReaderMutexLock|WriterMutexLock)\w*"
                        r"|absl/synchronization/mutex\.h",
                        "use base::Mutex; ThreadSanitizer reports false races through absl's")


@rule
def absl_string_view_in_server(files):
    yield from unwanted(code_files(files, "server"), r"std::string_view|<string_view>",
                        "use absl::string_view, which is another type here")


@rule
def glog_not_in_headers(files):
    for file in code_files(files, "server", "client", "tests"):
        for line, header in file.includes():
            if header.startswith("glog/") and file.suffix == ".h":
                yield file, line, "glog belongs in .cc files"
            if header.startswith("absl/log/"):
                yield file, line, "glog and absl/log do not mix"


@rule
def no_exceptions(files):
    yield from unwanted(code_files(files, "server", "client"),
                        r"\bthrow\b(?!\s*\))|\btry\s*\{|\bcatch\s*\(", "errors are absl::Status")


@rule
def time_and_chance_are_injected(files):
    for file in code_files(files, "server"):
        if file.below("server/base", "server/process"):
            continue
        pattern = r"absl::Now\(|_clock::now\(|std::random_device|absl::BitGen|\brand\(\)|\btime\("
        for line, match in file.find(pattern):
            yield file, line, f"{match.group(0)}: use base::Clock and base::RandomSource"


@rule
def refusals_are_built_in_errors_cc(files):
    for file in code_files(files, "server/arbiter", "server/rpc"):
        for line, match in file.find(r"google::rpc::ErrorInfo|\brpc::ErrorInfo"):
            if not re.search(r"/(errors|status)\w*\.(cc|h)$", file.path):
                yield file, line, f"{match.group(0)}: errors are built in server/arbiter/errors.cc"


@rule
def no_sleeps_in_tests(files):
    chosen = [file for file in files
              if file.below("tests") and file.suffix in CODE + (".py", ".sh", ".cmake")]
    yield from unwanted(chosen, r"\b(sleep_for|sleep_until|SleepFor|usleep|nanosleep|sleep)\s*\(",
                        "wait for the event")


@rule
def tests_are_not_switched_off(files):
    yield from unwanted(code_files(files, "tests"), r"\bDISABLED_\w+", "mend it or remove it")


@rule
def sources_are_in_cmake(files):
    """Each .cc is named, with or without its ending, by a CMakeLists.txt at or above its folder."""
    lists = {str(pathlib.PurePosixPath(file.path).parent): file.text for file in files
             if file.name == "CMakeLists.txt"}
    for file in files:
        if file.suffix != ".cc":
            continue
        path = pathlib.PurePosixPath(file.path)
        named = False
        for folder in path.parents:
            relative = re.escape(str(path.relative_to(folder))[:-len(".cc")])
            text = re.sub(r"#.*", "", lists.get(str(folder), ""))
            named = named or re.search(rf"(?<![\w./-]){relative}(\.cc)?(?![\w.-])", text)
        if not named:
            yield file, 1, "no CMakeLists.txt builds it"


@rule
def cmake_lists_its_sources(files):
    chosen = [file for file in files if file.name == "CMakeLists.txt"]
    yield from unwanted(chosen, r"file\s*\(\s*GLOB\w*", "list the files")


@rule
def header_guards(files):
    for file in files:
        if file.suffix != ".h":
            continue
        path = file.path
        if path.startswith("client/include/claimd/"):
            path = path[len("client/include/claimd/"):]
        guard = "CLAIMD_" + re.sub(r"[^A-Z0-9]", "_", path.upper()) + "_"
        head = rf"\A(//[^\n]*\n|\n)*#ifndef {guard}\n#define {guard}\n"
        if not re.search(head, file.text) or \
                not file.text.endswith(f"\n#endif  // {guard}\n"):
            yield file, 1, f"the header guard must be {guard}, from the first line to the last"


@rule
def no_unfinished_marks(files):
    marks = r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK|UNIMPLE" r"MENTED_YET)\b"
    for file in files:
        for line, match in file.find(marks, file.text):
            yield file, line, f"{match.group(0)}: finish it or file an issue"


@rule
def no_paths_of_one_machine(files):
    places = r"(?<![\w.])/(wo" r"rk|ro" r"ot|ho" r"me/\w+)/"
    for file in files:
        for line, match in file.find(places, file.text):
            yield file, line, f"{match.group(0)}: this path exists on one machine only"


@rule
def nolint_names_its_check(files):
    for file in files:
        if file.suffix not in CODE:
            continue
        for line, _ in file.find(r"NOLINT(NEXTLINE|BEGIN|END)?(?!\w|\()", file.text):
            yield file, line, "NOLINT must name the check, as in NOLINT(google-runtime-int)"


@rule
def file_length(files):
    for file in files:
        lines = file.text.count("\n")
        if file.suffix in CODE + (".py", ".sh") and lines > FILE_LINES_MAX:
            yield file, lines, f"{lines} lines, more than {FILE_LINES_MAX}: does it hold two ideas?"


@rule
def line_length(files):
    for file in files:
        if file.suffix not in CODE + (".proto", ".py"):
            continue
        for number, line in enumerate(file.text.splitlines(), 1):
            if len(line) > COLUMNS_MAX:
                yield file, number, f"{len(line)} columns, more than {COLUMNS_MAX}"


@rule
def whitespace(files):
    for file in files:
        if file.suffix == ".md":
            continue
        for line, _ in file.find(r"[ \t]+\n|\t", file.text):
            yield file, line, "a tab, or blanks at the end of the line"
        if file.text and not file.text.endswith("\n"):
            yield file, file.text.count("\n") + 1, "no newline at the end"


def violations(root):
    """Every violation below 'root', as (rule, path, line, what is wrong)."""
    files = load(root)
    return [(name, file.path, line, message)
            for name, function in RULES.items()
            for file, line, message in function(files)]


def main():
    found = violations(pathlib.Path(sys.argv[1]))
    for name, path, line, message in found:
        print(f"{path}:{line}: {name}: {message}")
    print(f"{len(RULES)} rules, {len(found)} violations")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
