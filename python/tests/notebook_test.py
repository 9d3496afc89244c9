"""The notebook of examples/ runs, on a simulated run and on one of `pace train`.

Needs nbclient and ipykernel; it is skipped where they are missing.
"""

import importlib.util
import os
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
NOTEBOOK = ROOT / "examples" / "notebook" / "finished_run.ipynb"
PROGRAM = ROOT / "build" / "pace"


@unittest.skipUnless(all(map(importlib.util.find_spec, ("nbclient", "nbformat", "ipykernel"))),
                     "needs nbclient and ipykernel")
class NotebookTest(unittest.TestCase):
    def outputs(self, run):
        import nbclient
        import nbformat

        os.environ.pop("RUN", None)
        if run is not None:
            os.environ["RUN"] = str(run)
        notebook = nbformat.read(NOTEBOOK, as_version=4)
        nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3").execute()
        texts = []
        for cell in notebook.cells:
            for output in cell.get("outputs", []):
                texts.append(output.get("text", "") or output.get("data", {}).get("text/plain", ""))
        return "\n".join(texts)

    def test_it_runs_without_a_run(self):
        shown = self.outputs(None)
        self.assertIn("Run('run', sim, 30 steps)", shown)
        self.assertIn("admit", shown)
        self.assertTrue(shown.endswith("True"))

    def test_it_shows_a_finished_run(self):
        if not PROGRAM.exists():
            self.skipTest("needs build/pace")
        with tempfile.TemporaryDirectory() as folder:
            run = pathlib.Path(folder) / "tiny"
            subprocess.run([PROGRAM, "train", "tiny", "--driver", "lab", "run.num_steps=2",
                            "batch.num_groups=2", "batch.group_size=2", "run.evaluate_every=0",
                            "task.max_numbers=3", "record.level=full", "--out", run],
                           check=True, capture_output=True)
            shown = self.outputs(run)
        self.assertIn("lab, 2 steps", shown)
        self.assertIn("→", shown)


if __name__ == "__main__":
    unittest.main()
