"""Shows that each rule of source_rules.py fails on a tree that breaks it, and on nothing else."""

import pathlib
import tempfile
import unittest

import source_rules

GUARDED = "#ifndef {0}\n#define {0}\n{1}\n#endif  // {0}\n"


def header(path, body):
    """A header with the guard that its path asks for."""
    name = path[len("client/include/claimd/"):] if path.startswith("client/include/") else path
    guard = "CLAIMD_" + "".join(c if c.isalnum() else "_" for c in name.upper()) + "_"
    return {path: GUARDED.format(guard, body)}


def source(path, body):
    """A source file and the CMakeLists.txt that builds it."""
    folder, name = path.rsplit("/", 1)
    return {path: body, f"{folder}/CMakeLists.txt": f"add_library(x {name})\n"}


# A tree with one of each thing that is allowed although it looks like a breach.
CLEAN = {
    **header("server/base/mutex.h", "// Used instead of absl::Mutex.\n#include <mutex>\n"),
    **header("server/arbiter/rules.h", '#include "claimd/v1/manifest.pb.h"\n'
             '#include "server/store/shard_key.h"\n'),
    **header("server/arbiter/arbiter.h", '#include "server/base/clock.h"\n'
             '#include "server/store/manifest_store.h"\n'),
    **header("server/rpc/service.h", '#include <grpcpp/server.h>\n'
             '#include "server/arbiter/arbiter.h"\n'),
    **header("server/process/server.h", '#include "server/store/rocksdb_store.h"\n'),
    **header("client/include/claimd/client.h", '#include "absl/status/status.h"\n'),
    **source("server/arbiter/rules.cc", '#include "server/arbiter/rules_internal.h"\n'
             "// A long line may not throw; try { to say so in a comment.\n"
             'const char* const kText = "// no comment";  // NOLINT(misc-unused-using-decls)\n'),
    "tests/e2e/CMakeLists.txt": "claimd_e2e_test(fencing_test)\n",
    "tests/e2e/fencing_test.cc": '#include "claimd/v1/shard_arbiter.grpc.pb.h"\n',
    "tests/data/odd.txt": "TO" "DO \t \n",
    "README.md": "# claimd  \n",
}

# For each rule: trees that break it, and only it.
BAD = {
    "layering": [
        header("server/base/clock.h", '#include "server/store/shard_key.h"\n'),
        header("server/store/x.h", '#include "server/arbiter/arbiter.h"\n'),
        header("server/arbiter/arbiter.h", '#include "server/store/rocksdb_store.h"\n'),
        header("server/arbiter/arbiter.h", '#include "server/rpc/service.h"\n'),
        header("server/rpc/service.h", '#include "server/process/flags.h"\n'),
        header("server/rpc/service.h", '#include "server/store/memory_store.h"\n'),
        header("server/process/x.h", '#include "client/src/core.h"\n'),
        header("server/lease/x.h", ""),
    ],
    "base-has-no-domain-words": [
        header("server/base/x.h", '#include "claimd/v1/manifest.pb.h"\n')],
    "rules-are-pure": [
        header("server/arbiter/rules.h", '#include "server/base/clock.h"\n'),
        header("server/arbiter/rules_commit.h", "#include <mutex>\n"),
        header("server/arbiter/invariants.h", '#include "server/store/manifest_store.h"\n'),
        source("server/arbiter/errors.cc", "#include <glog/logging.h>\n"),
    ],
    "only-rpc-and-process-know-grpc": [
        header("server/store/x.h", "#include <grpcpp/server.h>\n"),
        header("server/arbiter/x.h", '#include "claimd/v1/admin.grpc.pb.h"\n'),
    ],
    "client-knows-no-server": [
        header("client/src/core.h", '#include "server/base/mutex.h"\n'),
        header("client/src/core.h", '#include "claimd/storage/v1/storage.pb.h"\n'),
    ],
    "public-headers-are-plain": [
        header("client/include/claimd/x.h", "#include <grpcpp/channel.h>\n"),
        header("client/include/claimd/x.h", '#include "claimd/v1/manifest.pb.h"\n'),
        header("client/include/claimd/x.h", "void F(std::string_view text);\n"),
    ],
    "e2e-tests-use-the-wire-only": [
        source("tests/e2e/x_test.cc", '#include "server/arbiter/arbiter.h"\n')],
    "no-absl-mutex": [
        header("server/rpc/x.h", "absl::Mutex mu;\n"),
        header("client/src/x.h", '#include "absl/synchronization/mutex.h"\n'),
    ],
    "absl-string-view-in-server": [header("server/base/x.h", "void F(std::string_view text);\n")],
    "glog-not-in-headers": [
        header("server/rpc/x.h", "#include <glog/logging.h>\n"),
        source("server/rpc/x.cc", '#include "absl/log/log.h"\n'),
    ],
    "no-exceptions": [
        source("server/rpc/x.cc", "void F() { throw 1; }\n"),
        source("client/src/x.cc", "void F() { try { G(); } catch (...) {} }\n"),
    ],
    "time-and-chance-are-injected": [
        source("server/arbiter/x.cc", "auto now = absl::Now();\n"),
        source("server/rpc/x.cc", "auto now = std::chrono::steady_clock::now();\n"),
    ],
    "refusals-are-built-in-errors-cc": [
        source("server/rpc/x.cc", "google::rpc::ErrorInfo info;\n")],
    "no-sleeps-in-tests": [
        source("tests/unit/x_test.cc", "std::this_thread::sleep_" "for(1s);\n"),
        {"tests/e2e/x.py": "import time\ntime.sle" "ep(1)\n"},
    ],
    "tests-are-not-switched-off": [
        source("tests/unit/x_test.cc", "TEST(A, DISABLED_" "B) {}\n")],
    "sources-are-in-cmake": [
        {"tests/unit/x_test.cc": "", "tests/unit/CMakeLists.txt": "add_test(other_x_test.cc)\n"},
        {"tests/unit/x_test.cc": "", "tests/unit/CMakeLists.txt": "# x_test.cc\n"},
        {"server/base/uuid.cc": ""},
    ],
    "cmake-lists-its-sources": [
        {"server/CMakeLists.txt": "file(GLOB sources *.cc)\n"}],
    "header-guards": [
        {"server/base/x.h": GUARDED.format("SERVER_X_H", "")},
        {"server/base/x.h": "#pragma once\n"},
    ],
    "no-unfinished-marks": [
        source("server/base/x.cc", "// TO" "DO: more\n"),
        {"deploy/x.sh": "# FIX" "ME\n"},
    ],
    "no-paths-of-one-machine": [{"deploy/x.sh": "cd /ro" "ot/claimd\n"}],
    "nolint-names-its-check": [source("server/base/x.cc", "int x;  // NOLINT\n")],
    "file-length": [source("server/base/x.cc", "\n" * (source_rules.FILE_LINES_MAX + 1))],
    "line-length": [
        source("server/base/x.cc", "// " + "x" * source_rules.COLUMNS_MAX + "\n"),
        {"proto/claimd/v1/x.proto": "// " + "x" * source_rules.COLUMNS_MAX + "\n"},
    ],
    "whitespace": [
        source("server/base/x.cc", "int x; \n"),
        source("server/base/x.cc", "\tint x;\n"),
        source("server/base/x.cc", "int x;"),
    ],
}


def violations(tree):
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for path, text in tree.items():
            file = root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        return source_rules.violations(root)


def joined(tree, other):
    """Both trees in one; a CMakeLists.txt that is in both says both."""
    result = {**tree, **other}
    for path in set(tree) & set(other):
        if path.endswith("CMakeLists.txt"):
            result[path] = tree[path] + other[path]
    return result


class SourceRulesTest(unittest.TestCase):
    def test_clean_tree_breaks_no_rule(self):
        self.assertEqual(violations(CLEAN), [])

    def test_each_rule_has_a_tree_that_breaks_it(self):
        self.assertEqual(sorted(BAD), sorted(source_rules.RULES))

    def test_each_bad_tree_breaks_its_rule_and_no_other(self):
        for name, trees in BAD.items():
            for tree in trees:
                with self.subTest(rule=name, tree=tree):
                    found = violations(joined(CLEAN, tree))
                    self.assertEqual({rule for rule, *_ in found}, {name}, found)
                    self.assertLessEqual({path for _, path, *_ in found}, set(tree))

    def test_violation_says_where(self):
        tree = header("server/base/x.h", "\nint x;\n\nabsl::Mutex mu;")
        (_, path, line, message), = violations(tree)
        self.assertEqual((path, line), ("server/base/x.h", 6))
        self.assertIn("absl::Mutex", message)


if __name__ == "__main__":
    unittest.main()
