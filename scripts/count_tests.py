"""Adds up the ctest results (JUnit files) of one folder.

    count_tests.py [--failed-builds N] FOLDER

Prints "N passed, M failed, K skipped" and exits 1 when something failed. One
ctest entry is often a binary of many cases: where its output ends in the
summary of GoogleTest or of Python's unittest, the cases are counted, so that
cases skipped inside a passing binary show.
"""

import argparse
import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree
from typing import NamedTuple


class Count(NamedTuple):
    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def __add__(self, other):
        return Count(*(mine + theirs for mine, theirs in zip(self, other)))


def _last_int(pattern, text):
    found = re.findall(pattern, text, re.MULTILINE)
    return int(found[-1]) if found else 0


def cases_in(output):
    """The cases that a test's output reports, or None where it reports none."""
    if re.search(r"^\[=+\] \d+ tests? from .* ran\.", output, re.MULTILINE):
        return Count(
            _last_int(r"^\[  PASSED  \] (\d+) tests?", output),
            _last_int(r"^\[  FAILED  \] (\d+) tests?, listed below", output),
            _last_int(r"^\[  SKIPPED \] (\d+) tests?, listed below", output),
        )
    ran = re.findall(r"^Ran (\d+) tests? in ", output, re.MULTILINE)
    if ran:
        failed = _last_int(r"^FAILED \(.*?failures=(\d+)", output)
        failed += _last_int(r"^FAILED \(.*?errors=(\d+)", output)
        skipped = _last_int(r"^(?:OK|FAILED) \(.*?skipped=(\d+)", output)
        return Count(max(int(ran[-1]) - failed - skipped, 0), failed, skipped)
    return None


def count_entry(entry):
    """One ctest entry, whose own verdict wins over what its output says."""
    output = entry.findtext("system-out") or ""
    status = entry.get("status")
    if status in ("notrun", "disabled"):
        # "Not Run" also stands for a binary that is not there.
        missing = "Unable to find executable" in output or entry.find("failure") is not None
        return Count(failed=1) if missing else Count(skipped=1)
    cases = cases_in(output)
    if status == "fail":
        # A crash, a leak found at exit or a timeout leaves no failing case.
        return cases if cases and cases.failed else Count(failed=1) + (cases or Count())
    return cases or Count(passed=1)


def count_folder(folder):
    total = Count()
    for path in sorted(pathlib.Path(folder).glob("*.xml")):
        for entry in ElementTree.parse(path).getroot().iter("testcase"):
            total += count_entry(entry)
    return total


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--failed-builds", type=int, default=0)
    parser.add_argument("folder")
    arguments = parser.parse_args()
    total = count_folder(arguments.folder) + Count(failed=arguments.failed_builds)
    print(f"{total.passed} passed, {total.failed} failed, {total.skipped} skipped")
    return 1 if total.failed or not total.passed else 0


if __name__ == "__main__":
    sys.exit(main())
