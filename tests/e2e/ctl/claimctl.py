"""Runs claimctl for tests, against a claimd of its own.

Environment: CLAIMCTL_BINARY, and those of claimd_server.py.
"""

import json
import os
import pathlib
import subprocess
import sys
import unittest
import uuid

SOURCE_DIR = pathlib.Path(os.environ["CLAIMD_SOURCE_DIR"])
sys.path.insert(0, str(SOURCE_DIR / "tests/e2e/foreign"))
from claimd_server import Server, TIMEOUT_S  # noqa: E402  (needs the path above)

BINARY = os.environ["CLAIMCTL_BINARY"]
DATA = SOURCE_DIR / "tests/data"

OK = 0
OTHER = 1
USAGE = 2
NOT_FOUND = 3
LOST = 4
REFUSED = 5
STATE = 6
UNAVAILABLE = 7
SOME_REFUSED = 9


def run_claimctl(*words, server=None, stdin="", stdout=subprocess.PIPE, columns=None):
    """Runs claimctl to its end; answers returncode, stdout and stderr."""
    environment = {name: value for name, value in os.environ.items()
                   if name not in ("CLAIMD_SERVER", "COLUMNS")}
    environment["USER"] = "tester"
    if server is not None:
        environment["CLAIMD_SERVER"] = server
    if columns is not None:
        environment["COLUMNS"] = str(columns)
    return subprocess.run([BINARY, *map(str, words)], input=stdin, stdout=stdout,
                          stderr=subprocess.PIPE, text=True, env=environment, timeout=TIMEOUT_S,
                          check=False)


class ClaimctlTest(unittest.TestCase):
    """A suite with one server; each test takes fresh shards."""

    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.server.__enter__()
        cls.addClassCleanup(cls.server.__exit__)

    def run_code(self, code, *words, **options):
        """Runs claimctl, which must end with this code; answers its output."""
        options.setdefault("server", self.server.address)
        result = run_claimctl(*words, **options)
        self.assertEqual(result.returncode, code,
                         f"claimctl {' '.join(map(str, words))}\n{result.stdout}\n{result.stderr}")
        return result

    def json(self, *words, code=OK):
        """The one JSON document that a command writes."""
        return json.loads(self.run_code(code, *words, "--output=json").stdout)

    def json_lines(self, *words, code=OK):
        """The documents of its lines."""
        text = self.run_code(code, *words, "-o", "jsonl").stdout
        return [json.loads(line) for line in text.splitlines()]

    def error(self, code, *words):
        """What a failing command says for programs; people must be told the same."""
        for_programs = json.loads(self.run_code(code, *words, "-o", "json").stderr)
        self.assertEqual(for_programs["exitCode"], code)
        for_people = self.run_code(code, *words).stderr
        self.assertIn(for_programs["reason"], for_people)
        self.assertIn(for_programs["next"], for_people)
        for value in for_programs["metadata"].values():
            self.assertIn(value, for_people)
        return for_programs


def fresh_shard():
    return str(uuid.uuid4())
