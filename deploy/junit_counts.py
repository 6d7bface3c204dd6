"""Reads what ctest --output-junit wrote, since its closing lines call a test that cannot be run
"Not Run" and a skipped one passed.

usage: junit_counts.py FILE CTEST_EXIT_CODE

Prints failed and skipped tests with the end of their output, and on standard error the line
"PASSED FAILED SKIPPED". A ctest that failed without a failed test counts as one failure.
"""

import sys
import xml.etree.ElementTree

OUTPUT_LINES = 40
SHOWN_MAX = 10


def verdict(case):
    """Answers 'passed', 'failed' or 'skipped'."""
    if case.find("failure") is not None or case.get("status") == "fail":
        return "failed"
    if case.get("status") == "run":
        return "passed"
    skip = case.find("skipped")
    message = "" if skip is None else skip.get("message", "")
    if case.get("status") == "disabled" or message.startswith("SKIP_"):
        return "skipped"
    return "failed"  # Not run: no executable, or a fixture that failed.


def main():
    cases = xml.etree.ElementTree.parse(sys.argv[1]).getroot().findall("testcase")
    ctest_rc = int(sys.argv[2])
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    shown = 0
    for case in cases:
        result = verdict(case)
        counts[result] += 1
        if result == "passed":
            continue
        print(f"{result.upper()}: {case.get('name')}")
        if result == "failed" and shown < SHOWN_MAX:
            shown += 1
            output = (case.findtext("system-out") or "no output").splitlines()
            for line in output[-OUTPUT_LINES:]:
                print(f"  | {line}")
    if ctest_rc != 0 and counts["failed"] == 0:
        counts["failed"] = 1
        print(f"FAILED: ctest itself, with exit code {ctest_rc}")
    if not cases:
        counts["failed"] = max(1, counts["failed"])
        print("FAILED: ctest found no tests")
    print(counts["passed"], counts["failed"], counts["skipped"], file=sys.stderr)


if __name__ == "__main__":
    main()
