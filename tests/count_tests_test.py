"""The closing line of `make test` adds up what ctest wrote."""

import pathlib
import subprocess
import sys
import tempfile
import unittest
from xml.sax.saxutils import escape

import source_tree

_GTEST = """[==========] 5 tests from 1 test suite ran. (1 ms total)
[  PASSED  ] 2 tests.
[  SKIPPED ] 2 tests, listed below:
[  FAILED  ] 1 test, listed below:
"""


class CountTestsTest(unittest.TestCase):
    def count(self, *entries, arguments=()):
        """Runs the script on entries of (status, output); answers (line, exit code)."""
        body = "".join(f'<testcase name="t" status="{status}">'
                       f"<system-out>{escape(output)}</system-out></testcase>"
                       for status, output in entries)
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "a.xml").write_text(f"<testsuite>{body}</testsuite>")
            done = subprocess.run(
                [sys.executable, source_tree.root() / "scripts/count_tests.py", *arguments, folder],
                capture_output=True, text=True, check=False)
        return done.stdout.strip(), done.returncode

    def test_an_entry_without_cases_counts_once(self):
        self.assertEqual(self.count(("run", "fine")), ("1 passed, 0 failed, 0 skipped", 0))

    def test_cases_of_googletest_are_counted(self):
        self.assertEqual(self.count(("fail", _GTEST)), ("2 passed, 1 failed, 2 skipped", 1))

    def test_cases_of_unittest_are_counted(self):
        output = "Ran 7 tests in 0.1s\n\nOK (skipped=3)\n"
        self.assertEqual(self.count(("run", output)), ("4 passed, 0 failed, 3 skipped", 0))
        output = "Ran 7 tests in 0.1s\n\nFAILED (failures=1, errors=2, skipped=1)\n"
        self.assertEqual(self.count(("fail", output)), ("3 passed, 3 failed, 1 skipped", 1))

    def test_a_failure_after_the_last_case_is_a_failure(self):
        output = "[==========] 2 tests from 1 test suite ran.\n[  PASSED  ] 2 tests.\nleak\n"
        self.assertEqual(self.count(("fail", output)), ("2 passed, 1 failed, 0 skipped", 1))

    def test_a_crash_is_a_failure(self):
        self.assertEqual(self.count(("fail", "")), ("0 passed, 1 failed, 0 skipped", 1))

    def test_a_test_that_did_not_run_is_skipped_but_a_missing_binary_fails(self):
        self.assertEqual(self.count(("run", ""), ("notrun", "")),
                         ("1 passed, 0 failed, 1 skipped", 0))
        self.assertEqual(self.count(("run", ""), ("notrun", "Unable to find executable: x")),
                         ("1 passed, 1 failed, 0 skipped", 1))

    def test_a_build_that_failed_is_a_failure(self):
        self.assertEqual(self.count(("run", ""), arguments=["--failed-builds", "1"]),
                         ("1 passed, 1 failed, 0 skipped", 1))

    def test_nothing_passed_is_a_failure(self):
        self.assertEqual(self.count(), ("0 passed, 0 failed, 0 skipped", 1))


if __name__ == "__main__":
    unittest.main()
