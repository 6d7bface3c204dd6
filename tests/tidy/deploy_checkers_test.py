"""Shows that the checkers of deploy/ tell good from bad.

usage: deploy_checkers_test.py SOURCE_DIR
"""

import contextlib
import io
import json
import os
import pathlib
import shutil
import sys
import tempfile
import unittest
import xml.etree.ElementTree

SOURCE_DIR = pathlib.Path(sys.argv.pop(1)).resolve()
sys.path.insert(0, str(SOURCE_DIR / "deploy"))
# pylint: disable=wrong-import-position
import clang_tidy
import junit_counts

LONG = "int Long(int x) {\n" + "  x += 1;\n" * 70 + "  return x;\n}\n"
TANGLED = ("int Tangled(int a) {\n" + "if (a > 1) {\n" * 7 + "a = 2;\n" +
           "} else {\na = 3;\n}\n" * 7 + "return a;\n}\n")


class JunitCountsTest(unittest.TestCase):
    def verdict(self, attributes, inner=""):
        return junit_counts.verdict(
            xml.etree.ElementTree.fromstring(f"<testcase {attributes}>{inner}</testcase>"))

    def test_tells_the_verdicts_apart(self):
        self.assertEqual(self.verdict('status="run"'), "passed")
        self.assertEqual(self.verdict('status="fail"', "<failure/>"), "failed")
        self.assertEqual(self.verdict('status="disabled"'), "skipped")
        self.assertEqual(
            self.verdict('status="notrun"', '<skipped message="SKIP_RETURN_CODE=77"/>'), "skipped")

    def test_test_without_executable_has_failed(self):
        self.assertEqual(
            self.verdict('status="notrun"', '<skipped message="Unable to find executable"/>'),
            "failed")


class ClangTidyTest(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.root)
        (self.root / "server").mkdir()
        shutil.copy(SOURCE_DIR / ".clang-tidy", self.root)
        self.root_before, clang_tidy.ROOT = clang_tidy.ROOT, self.root
        self.addCleanup(setattr, clang_tidy, "ROOT", self.root_before)
        os.environ["CLAIMD_CACHE_DIR"] = str(self.root / "cache")

    def run_on(self, **sources):
        """Runs on server/NAME.cc for each NAME; answers the counts and what was printed."""
        database = []
        for name, text in sources.items():
            file = self.root / "server" / f"{name}.cc"
            file.write_text(text)
            database.append({"directory": str(self.root), "file": str(file),
                             "command": f"clang++ -std=c++20 -I. -c {file} -o x.o"})
        (self.root / "compile_commands.json").write_text(json.dumps(database))
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            counts = clang_tidy.run(self.root)
        return counts, printed.getvalue()

    def test_clean_file_passes_and_is_remembered(self):
        good = "int Good() { return 1; }\n"
        self.assertEqual(self.run_on(good=good)[0], (1, 0, 0))
        self.assertEqual(self.run_on(good=good)[0], (1, 0, 1))

    def test_findings_are_not_remembered(self):
        self.assertEqual(self.run_on(bad="int bad_Name() { return 1; }\n")[0], (1, 1, 0))
        self.assertEqual(self.run_on(bad="int bad_Name() { return 1; }\n")[0], (1, 1, 0))

    def test_changed_header_is_read_again(self):
        header = self.root / "server" / "h.h"
        header.write_text("int H();\n")
        text = '#include "server/h.h"\nint Good() { return H(); }\n'
        self.assertEqual(self.run_on(good=text)[0], (1, 0, 0))
        header.write_text("int H();\ninline int wrong_Name() { return 0; }\n")
        counts, printed = self.run_on(good=text)
        self.assertEqual(counts, (1, 1, 0), printed)

    def test_changed_comment_is_read_again(self):
        bad = "int bad_Name() { return 1; }"
        quiet = f"{bad}  // NOLINT(readability-identifier-naming)\n"
        self.assertEqual(self.run_on(good=quiet)[0], (1, 0, 0))
        self.assertEqual(self.run_on(good=f"{bad}\n")[0], (1, 1, 0))

    def test_finds_what_the_style_forbids(self):
        for check, text in {
                "readability-function-size": LONG,
                "readability-function-cognitive-complexity": TANGLED,
                "readability-identifier-naming": "struct lower { int x; };\n",
                "google-explicit-constructor": "struct A { A(int x); };\n",
                "bugprone-use-after-move":
                    "#include <string>\n#include <utility>\nstd::string F(std::string s) {\n"
                    "  std::string t = std::move(s);\n  return t + s;\n}\n",
        }.items():
            with self.subTest(check=check):
                counts, printed = self.run_on(bad=text)
                self.assertEqual(counts[1], 1, printed)
                self.assertIn(check, printed)


if __name__ == "__main__":
    unittest.main()
