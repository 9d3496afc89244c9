"""Damages a good report in one way at a time; open_report.py must find each."""

import os
import pathlib
import re
import tempfile
import unittest

import chromium
import open_report

DAMAGES = {
    "a message on the console": (lambda s: s.replace("<script>", "<script>console.error('boom');"), "boom"),
    "an exception": (lambda s: s.replace("<script>", "<script>throw new Error('bang');"), "bang"),
    "a page that is too wide": (
        lambda s: s.replace("<main>", "<main><div style='width:700px'>x</div>"), "in a window of 360"),
    "a chart without marks": (
        lambda s: re.sub(r'(data-chart="occupancy".*?</figure>)',
                         lambda m: m[0].replace('class="mark ', 'class="'), s, flags=re.S),
        "chart occupancy: none of 0 marks"),
    "marks without paint": (
        lambda s: s.replace("</style>", ".mark{fill:none!important;stroke:none!important}</style>"),
        "marks is visible"),
    "labels on each other": (lambda s: s.replace('<text x="4" y="12"', '<text x="30" y="24"'), "lies on"),
    "a request to the network": (
        lambda s: s.replace("<main>", "<main><img alt='' src='https://example.invalid/x.png'>"),
        "asks for https://example.invalid"),
    "readings that are not numbers": (
        lambda s: s.replace("data-plot=\"", "data-plot=\"x"), "tells no values"),
    "no dark scheme": (
        lambda s: s.replace("prefers-color-scheme:dark", "prefers-color-scheme:none"), "same background"),
}


@unittest.skipIf(chromium.find() is None, "no chromium on this machine")
class OpenReportCanFailTest(unittest.TestCase):
    def test_each_damage_is_found_and_the_good_report_passes(self):
        good = pathlib.Path(os.environ["PACE_BINARY_DIR"], "sample_reports", "one_run.html").read_text()
        with tempfile.TemporaryDirectory() as folder, chromium.Chromium(chromium.find()) as browser:
            path = pathlib.Path(folder, "report.html")
            path.write_text(good)
            self.assertEqual(list(open_report.problems_of_report(browser, path, None)), [])
            for name, (damage, expected) in DAMAGES.items():
                with self.subTest(name):
                    damaged = damage(good)
                    self.assertNotEqual(damaged, good)
                    path.write_text(damaged)
                    found = list(open_report.problems_of_report(browser, path, None))
                    self.assertTrue(any(expected in problem for problem in found), found)


if __name__ == "__main__":
    unittest.main()
