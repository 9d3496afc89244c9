"""docs/performance.md is what its script writes from the results that are there."""

import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).parents[1]


class PerformancePageTest(unittest.TestCase):
    def test_the_page_says_what_the_results_say(self):
        done = subprocess.run([sys.executable, "-B", ROOT / "scripts" / "performance_page.py"],
                              capture_output=True, text=True, check=True)
        self.assertEqual((ROOT / "docs" / "performance.md").read_text(encoding="utf-8"),
                         done.stdout)


if __name__ == "__main__":
    unittest.main()
