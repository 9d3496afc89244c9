"""docs/your-own.md, followed to the letter: its files are written, its commands run."""

import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import pace_process

PAGE = pace_process.SOURCE / "docs" / "your-own.md"
EXAMPLE = pace_process.SOURCE / "examples" / "your_own"
NEEDED = ("torch", "transformers", "tokenizers", "pyarrow")


class YourOwnTest(unittest.TestCase):
    @unittest.skipUnless(all(map(importlib.util.find_spec, NEEDED)), f"needs {', '.join(NEEDED)}")
    def test_the_page_trains_and_exports(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        blocks = re.findall(r"^```(\w+)\n(.*?)^```", PAGE.read_text(), re.S | re.M)
        for kind, text in blocks:
            if kind in ("python", "yaml"):
                name = re.match(r"# (\S+)\n", text).group(1)
                (folder / name).write_text(text)
                self.assertEqual((EXAMPLE / name).read_text(), text, f"{name} is not the page's")
        self.assertLessEqual(
            len((folder / "my_rewards.py").read_text().splitlines()), 20)
        path = os.pathsep.join([os.path.dirname(sys.executable), str(pace_process.BINARY.parent),
                                os.environ["PATH"]])
        lines = [line for kind, text in blocks if kind == "sh" for line in text.splitlines()]
        self.assertGreaterEqual(len(lines), 6)
        self.assertEqual((EXAMPLE / "run.sh").read_text().splitlines()[2:], lines)
        shown = {}
        for line in lines:
            done = subprocess.run(line, shell=True, cwd=folder, env={**os.environ, "PATH": path},
                                  capture_output=True, text=True, timeout=pace_process.PATIENCE,
                                  check=False)
            self.assertEqual(done.returncode, 0, f"{line}\n{done.stdout}\n{done.stderr}")
            shown[line] = done
        self.assertIn("Add the numbers.", shown["pace data show my.yaml -n 2"].stdout)
        run = folder / "runs" / "mine"
        steps = pace_process.json_lines((run / "metrics.jsonl").read_text())
        self.assertEqual(len(steps), 8)
        self.assertGreater(steps[-1]["data/epoch"], 0.1)
        self.assertTrue(any(step["train/grad_norm"] > 0 for step in steps))
        rows = pace_process.json_lines((run / "rollouts.jsonl").read_text())
        self.assertTrue(all(set(row["detail"]) == {"form", "largest"} for row in rows))
        self.assertGreater(len({row["reward"] for row in rows}), 3)


if __name__ == "__main__":
    unittest.main()
