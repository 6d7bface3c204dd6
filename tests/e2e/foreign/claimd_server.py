"""A claimd of its own for a test: the real binary on a store in a temporary folder.

Environment: CLAIMD_BINARY, the server's path; CLAIMD_SOURCE_DIR, the source tree.
"""

import ctypes
import os
import pathlib
import select
import shutil
import signal
import subprocess
import tempfile

BINARY = os.environ["CLAIMD_BINARY"]
SOURCE_DIR = pathlib.Path(os.environ["CLAIMD_SOURCE_DIR"])
TIMEOUT_S = 60  # For a sanitizer build on a busy machine; nothing takes that long otherwise.

_IN_CLOSE_WRITE = 0x8
_IN_MOVED_TO = 0x80


class Server:
    """Starts claimd and knows its address; a context that stops it."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.process = None
        self.address = None

    def __enter__(self):
        ready_folder = self.folder / "ready"
        ready_folder.mkdir()
        ready = ready_folder / "ready"
        libc = ctypes.CDLL(None, use_errno=True)
        watch = libc.inotify_init1(os.O_CLOEXEC)
        libc.inotify_add_watch(watch, os.fsencode(ready_folder), _IN_CLOSE_WRITE | _IN_MOVED_TO)
        with open(self.folder / "log", "wb") as log:
            self.process = subprocess.Popen(
                [BINARY, "--listen=127.0.0.1:0", f"--store=rocksdb:{self.folder}/store",
                 f"--ready-file={ready}"], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        ended = os.pidfd_open(self.process.pid)
        try:
            while not ready.exists():
                happened, _, _ = select.select([watch, ended], [], [], TIMEOUT_S)
                if watch in happened:
                    os.read(watch, 4096)
                    continue
                raise RuntimeError(f"claimd did not get ready:\n{self.log()}")
        except BaseException:
            self.__exit__()
            raise
        finally:
            os.close(watch)
            os.close(ended)
        self.address = ready.read_text().split()[0]
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def stop(self):
        """Stops claimd as an operator does, and answers its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(TIMEOUT_S)

    def log(self):
        return (self.folder / "log").read_text(errors="replace")
