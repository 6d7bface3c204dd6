"""Runs clang-tidy over every file of ours in a compile database.

usage: clang_tidy.py BUILD_DIR

A file whose preprocessed text was clean before, under the same configuration and the same
clang-tidy, is not read again. What was clean is remembered in $CLAIMD_CACHE_DIR, or else in
$XDG_CACHE_HOME/claimd or ~/.cache/claimd.
"""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import shlex
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
OURS = ("server", "client", "tests")


def cache_dir():
    chosen = os.environ.get("CLAIMD_CACHE_DIR")
    base = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    folder = pathlib.Path(chosen) if chosen else base / "claimd"
    folder = folder / "clang-tidy"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def our_entries(build_dir):
    """The entries of files below our folders, one for each file."""
    entries = {}
    for entry in json.loads((build_dir / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["directory"], entry["file"]).resolve()
        if path.is_relative_to(ROOT) and path.relative_to(ROOT).parts[0] in OURS:
            entries.setdefault(path, entry)
    return entries


def preprocess_command(entry):
    """The compile command, turned into one that prints the preprocessed text."""
    words = shlex.split(entry["command"])
    if "ccache" in os.path.basename(words[0]):
        words = words[1:]
    kept, skip_next = [], False
    for word in words:
        if skip_next:
            skip_next = False
        elif word in ("-o", "-MF", "-MT"):
            skip_next = True
        elif word not in ("-c", "-MD"):
            kept.append(word)
    # Comments and macros stay: both can change what clang-tidy says.
    return kept + ["-E", "-CC", "-dD", "-w"]


def fingerprint(entry, salt):
    """Names a file's whole input, free of the folder that it lies in; None if it has none."""
    done = subprocess.run(preprocess_command(entry), cwd=entry["directory"], capture_output=True,
                          check=False)
    if done.returncode != 0:
        return None
    text = done.stdout.replace(str(ROOT).encode(), b"")
    command = entry["command"].replace(str(ROOT), "")
    return hashlib.sha256(salt + command.encode() + text).hexdigest()


def check(path, entry, build_dir, salt, cache):
    """Answers (path, output or None if clean, whether it was remembered)."""
    name = fingerprint(entry, salt)
    if name is not None and (cache / name).exists():
        return path, None, True
    done = subprocess.run(["clang-tidy", "-p", str(build_dir), "--quiet", str(path)],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return path, done.stdout + done.stderr, False
    if name is not None:
        (cache / name).touch()
    return path, None, False


def run(build_dir):
    """Checks every file and prints what comes of each.

    Answers how many files there are, how many have findings, how many were known to be clean.
    """
    entries = our_entries(build_dir)
    version = subprocess.run(["clang-tidy", "--version"], capture_output=True, check=True).stdout
    configs = [ROOT / ".clang-tidy"] + sorted(
        path for folder in OURS for path in (ROOT / folder).rglob(".clang-tidy"))
    salt = version + b"".join(path.read_bytes() for path in configs)
    cache, started = cache_dir(), time.monotonic()
    bad = remembered = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = [pool.submit(check, path, entry, build_dir, salt, cache)
                for path, entry in sorted(entries.items())]
        for count, job in enumerate(concurrent.futures.as_completed(jobs), 1):
            path, output, known = job.result()
            remembered += known
            bad += output is not None
            seconds = int(time.monotonic() - started)
            verdict = "clean" if output is None else "FINDINGS"
            print(f"[{count}/{len(jobs)}] {seconds} s {path.relative_to(ROOT)}: {verdict}",
                  flush=True)
            if output is not None:
                print(output, flush=True)
    return len(entries), bad, remembered


def main():
    files, bad, remembered = run(pathlib.Path(sys.argv[1]).resolve())
    print(f"{files} files, {bad} with findings, {remembered} known to be clean")
    if files == 0:
        sys.exit("no file of ours is in the compile database")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
