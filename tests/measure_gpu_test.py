"""scripts/measure_gpu with stand-ins for a GPU's driver and for pace: every stage runs what it
says, a stage that fails stops no other, and bad arguments are one line."""

import os
import pathlib
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[1] / "scripts" / "measure_gpu"
PACE = """#!/bin/sh
echo "pace $*" >> {log}
case "$*" in *methods*) exit 1 ;; esac
echo '{{}}'
"""


class MeasureGpuTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.log = self.folder / "log"
        self.write("bin/nvidia-smi", "#!/bin/sh\n")
        self.write("build/pace", PACE.format(log=self.log))
        self.write("smollm2/config.json", "{}")

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)

    def run_script(self, *stages, **environment):
        path = f"{self.folder / 'bin'}:{os.environ['PATH']}"
        return subprocess.run(
            [SCRIPT, *stages], capture_output=True, text=True, timeout=60, check=False,
            env=os.environ | {"PATH": path, "OUT": str(self.folder / "out"),
                              "BUILD": str(self.folder / "build"),
                              "SMOLLM2": str(self.folder / "smollm2"),
                              "PACE_SHARED_DATA": "/data"} | environment)

    def test_each_stage_runs_its_commands(self):
        done = self.run_script("decode", "compare", "words", "gsm8k", WORDS="run.num_steps=7")
        self.assertEqual(done.returncode, 0, done.stderr)
        decode, compare, words, gsm8k = self.log.read_text(encoding="utf-8").splitlines()
        self.assertEqual(decode, "pace bench decode --device cuda")
        self.assertIn("compare main device=cuda", compare)
        self.assertIn("train smollm2-words", words)
        self.assertIn("run.num_steps=7", words)
        self.assertIn("policy.model=" + str(self.folder / "smollm2"), gsm8k)
        self.assertIn("task.benchmarks=[/data/benchmarks/gsm8k_test.jsonl]", gsm8k)
        self.assertEqual((self.folder / "out" / "decode.json").read_text(encoding="utf-8"), "{}\n")

    def test_gsm8k_begins_from_the_newest_checkpoint_of_words(self):
        for step in ("step-000100", "step-000300"):
            self.write(f"out/words/checkpoints/{step}/config.json", "{}")
        self.run_script("gsm8k")
        self.assertIn("policy.model=" + str(self.folder / "out/words/checkpoints/step-000300"),
                      self.log.read_text(encoding="utf-8"))

    def test_a_stage_that_fails_stops_no_other(self):
        done = self.run_script("methods", "train")
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stderr, "measure_gpu: failed: methods\n")
        self.assertTrue((self.folder / "out" / "train.json").exists())

    def test_bad_arguments_are_one_line(self):
        done = self.run_script("decode", "nothing")
        self.assertEqual(done.returncode, 2)
        self.assertIn("'nothing': must be one of build test", done.stderr)
        self.assertFalse(self.log.exists())

    def test_help_names_every_stage(self):
        text = self.run_script("--help").stdout
        for stage in ("build", "conformance", "methods", "compare", "gsm8k"):
            self.assertIn(stage, text)
        self.assertNotIn("readonly", text)


if __name__ == "__main__":
    unittest.main()
