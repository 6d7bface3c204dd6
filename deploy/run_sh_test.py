"""Runs deploy/run.sh as a user does: twice on one data directory, with Ctrl-C, and into trouble.

Needs what deploy/setup.sh installs; builds the release preset if it is not built.
"""

import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
RUN = ROOT / "deploy" / "run.sh"
BUILD_TIMEOUT_S = 3600
SERVING = "until Ctrl-C"


class RunShTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.data = f"--data={self.folder}/data"

    def start(self, *options):
        """Starts run.sh as a shell with job control would: at the head of its own group."""
        process = subprocess.Popen(
            ["bash", RUN, *options], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, start_new_session=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(self.end, process)
        return process

    def end(self, process):
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(60)

    def run_to_end(self, *options):
        process = self.start(*options)
        output, _ = process.communicate(timeout=BUILD_TIMEOUT_S)
        return process.returncode, output

    def read_until(self, process, text):
        output = ""
        for line in process.stdout:
            output += line
            if text in line:
                return output
        return self.fail(f"run.sh ended before it said '{text}':\n{output}")

    def test_grants_one_claim_and_refuses_another(self):
        code, output = self.run_to_end("--listen=127.0.0.1:0", self.data, "--demo-only")
        self.assertEqual(code, 0, output)
        self.assertIn('"writer_epoch": "1"', output)
        # The refusal's details are decoded, not bytes.
        self.assertIn("SHARD_SPEC_MISMATCH", output)
        self.assertRegex(output, r'"incoming_shard_spec_id": "2"')
        self.assertRegex(output, r'"stored_shard_spec_id": "1"')

    def test_second_run_reuses_data(self):
        self.run_to_end("--listen=127.0.0.1:0", self.data, "--demo-only")
        code, output = self.run_to_end("--listen=127.0.0.1:0", self.data, "--demo-only")
        self.assertEqual(code, 0, output)
        self.assertIn('"writer_epoch": "2"', output)

    def test_printed_commands_work_when_typed(self):
        process = self.start("--listen=127.0.0.1:0", self.data)
        output = self.read_until(process, SERVING)
        commands = re.findall(r"^\$ (.*?ClaimEpoch)$", output, re.DOTALL | re.MULTILINE)
        self.assertEqual(len(commands), 2, output)
        codes = [subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True,
                                check=False).returncode for command in commands]
        self.assertEqual(codes, [0, 64 + 3])  # INVALID_ARGUMENT is 3.

    def test_interrupt_stops_cleanly(self):
        process = self.start("--listen=127.0.0.1:0", self.data)
        output = self.read_until(process, SERVING)
        os.killpg(process.pid, signal.SIGINT)
        rest, _ = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, output + rest)
        self.assertIn("claimd has stopped", rest)

    def test_serves_on_a_unix_socket(self):
        code, output = self.run_to_end(f"--listen=unix:{self.folder}/claimd.sock", self.data,
                                       "--demo-only")
        self.assertEqual(code, 0, output)

    def test_taken_address_is_said(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            code, output = self.run_to_end(f"--listen=127.0.0.1:{taken.getsockname()[1]}",
                                           self.data, "--demo-only")
        self.assertEqual(code, 1, output)
        self.assertIn("--listen=127.0.0.1:PORT", output)

    def test_data_in_use_is_said(self):
        self.read_until(self.start("--listen=127.0.0.1:0", self.data), SERVING)
        code, output = self.run_to_end("--listen=127.0.0.1:0", self.data, "--demo-only")
        self.assertEqual(code, 1, output)
        self.assertIn("--data=DIR", output)

    def test_unknown_option_is_refused(self):
        code, output = self.run_to_end("--lisen=127.0.0.1:0")
        self.assertEqual(code, 1, output)
        self.assertIn("unknown option: --lisen=127.0.0.1:0", output)


if __name__ == "__main__":
    unittest.main(verbosity=2)
