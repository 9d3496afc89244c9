"""The checkpoints of the reference data, and what the command says of bad ones."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ.get("PACE_SOURCE_DIR", pathlib.Path(__file__).parents[2]))
BUILD = pathlib.Path(os.environ.get("PACE_BINARY_DIR", SOURCE / "build"))
sys.path.append(str(pathlib.Path(__file__).parents[1]))

import shared_data  # noqa: E402

MODELS = shared_data.FOLDER / "models"


def run(*arguments):
    done = subprocess.run([BUILD / "pace-conformance", "models", *map(str, arguments)],
                          capture_output=True, text=True, check=False)
    print(done.stderr.strip(), done.stdout.strip(), sep="\n", file=sys.stderr)
    return done


class ModelsConformanceTest(unittest.TestCase):
    def folders(self, config):
        folders = sorted(path.parent for path in MODELS.glob(f"*/{config}"))
        self.assertTrue(folders)
        return folders

    def assert_passes(self, *arguments):
        done = run(*arguments)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        counts = re.fullmatch(r"(\d+) passed, 0 failed, 0 skipped\n", done.stdout)
        self.assertIsNotNone(counts, done.stdout)
        self.assertGreater(int(counts.group(1)), 50)

    @shared_data.needs(MODELS, 20)
    def test_reference_checkpoints_agree(self):
        self.assert_passes(*self.folders("config.json"))

    @shared_data.needs(MODELS, 4)
    def test_reference_checkpoints_agree_in_the_layout_of_version_5(self):
        self.assert_passes(*self.folders("config_v5.json"), "--config", "config_v5.json")

    def test_a_folder_that_is_no_checkpoint_is_an_error(self):
        with tempfile.TemporaryDirectory() as folder:
            done = run(folder)
            self.assertEqual(done.returncode, 2)
            self.assertIn("config.json", done.stderr)
            pathlib.Path(folder, "config.json").write_text('{"model_type":"gpt2"}')
            self.assertIn("model_type = gpt2: must be llama", run(folder).stderr)


if __name__ == "__main__":
    unittest.main()
