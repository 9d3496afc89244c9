"""docs/supply.md holds what scripts/supply_page.py computes today: some of its rows, again."""

import sys
import unittest

import pace_process

sys.path.append(str(pace_process.SOURCE / "scripts"))
import supply_page  # noqa: E402


class SupplyPageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        page = (pace_process.SOURCE / "docs" / "supply.md").read_text()
        cls.lines = page.splitlines()
        cls.page = page

    def test_the_summaries_follow_from_the_rows(self):
        rows = [line for line in self.lines if line.startswith("| ") and "cluster" not in line]
        steady = [row for row in rows if row.count("|") == 9]
        changed = [row for row in rows if row.count("|") == 11]
        lean = [row for row in rows if row.count("|") == 10]
        self.assertEqual(self.page, supply_page.page(steady, changed, lean))

    def test_a_row_of_a_steady_cluster_is_simulated_again(self):
        row = supply_page.steady_row(str(pace_process.BINARY), "math-4b",
                                     supply_page.PRESETS["math-4b"])
        self.assertIn(row, self.lines)

    def test_a_row_of_a_change_is_simulated_again(self):
        row = supply_page.change_row(str(pace_process.BINARY), "math-8b",
                                     supply_page.PRESETS["math-8b"], "trainer twice as fast")
        self.assertIn(row, self.lines)

    def test_a_row_of_lean_is_simulated_again(self):
        row = supply_page.lean_row(str(pace_process.BINARY), "math-8b",
                                   supply_page.PRESETS["math-8b"], "trainer twice as fast")
        self.assertIn(row, self.lines)


if __name__ == "__main__":
    unittest.main()
