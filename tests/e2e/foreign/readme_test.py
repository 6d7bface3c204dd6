"""Shows that README.md is true: its commands are run against the real programs and must print what
it says, its flags are those of claimd --help, its errors those of the server.

usage: readme_test.py [--update]     --update: write what is printed now into README.md

Environment as in claimd_server.py, and CLAIMD_CLAIMCTL, claimctl's path; grpcurl is on the PATH.
"""

import os
import pathlib
import re
import subprocess
import sys
import unittest

from claimd_server import BINARY, SOURCE_DIR, Server, TIMEOUT_S

README = SOURCE_DIR / "README.md"
CLAIMCTL = pathlib.Path(os.environ["CLAIMD_CLAIMCTL"])
ADDRESS = "127.0.0.1:7420"  # The default, as README.md has it.
CONSOLE = re.compile(r"(?<=^```console\n).*?(?=^```$)", re.DOTALL | re.MULTILINE)
# A command goes from its "$ " to the end of the line in which its quotes are closed.
COMMAND = re.compile(r"^\$ ((?:[^'\n]|'[^']*')*)\n", re.MULTILINE)
HELP = re.compile(r"(?<=^```text\n)claimd decides.*?(?=^```$)", re.DOTALL | re.MULTILINE)


def claimd_help():
    return subprocess.run([BINARY, "--help"], capture_output=True, text=True, check=True).stdout


def run(command, address):
    """What a command of README.md prints, as if claimd served at its default address.

    It runs where the Lance tables of its import lie.
    """
    path = os.pathsep.join([str(CLAIMCTL.parent), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-c", command.replace(ADDRESS, address)], cwd=SOURCE_DIR / "tests/data",
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        timeout=TIMEOUT_S, check=False, env={**os.environ, "PATH": path, "CLAIMD_SERVER": address})
    return done.stdout.replace(address, ADDRESS)


def run_console(text, address):
    """The block with what its commands print now."""
    return "".join(f"$ {command}\n{run(command, address)}" for command in COMMAND.findall(text))


def comparable(text):
    """Without what differs from run to run: times, and the blanks that align a table."""
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME", text)
    text = re.sub(r"\bnow\b|\b\d+[smhd] ago\b", "AGO", text)
    return [re.sub(r"\s+", " ", line).strip() for line in text.splitlines()]


class ReadmeTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.text = README.read_text(encoding="utf-8")

    def test_commands_print_what_it_says(self):
        blocks = CONSOLE.findall(self.text)
        self.assertGreater(len(blocks), 3)
        with Server() as server:
            for block in blocks:
                self.assertEqual(comparable(run_console(block, server.address)), comparable(block))

    def test_flags_are_those_of_the_program(self):
        self.assertEqual(HELP.findall(self.text), [claimd_help()])

    def test_errors_are_those_of_the_server(self):
        source = (SOURCE_DIR / "server/arbiter/errors.cc").read_text(encoding="utf-8")
        table = self.text.split("## Errors", 1)[1].split("\n## ", 1)[0]
        listed = {reason for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
                  for reason in re.findall(r"`([A-Z_]+)`", row)}
        self.assertEqual(listed, set(re.findall(r'"([A-Z]+(?:_[A-Z]+)*)"', source)))

    def test_files_that_it_names_exist(self):
        for path in re.findall(r"\b(?:deploy|proto|tests|client|server)/[\w./-]*\w", self.text):
            with self.subTest(path=path):
                self.assertTrue((SOURCE_DIR / path).exists())


def update():
    text = README.read_text(encoding="utf-8")
    with Server() as server:
        text = CONSOLE.sub(lambda match: run_console(match.group(0), server.address), text)
    text = HELP.sub(lambda _: claimd_help(), text)
    README.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:] == ["--update"]:
        update()
    else:
        unittest.main()
