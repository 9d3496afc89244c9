"""pace doctor: what there is and what is not; and devices that are not there."""

import json
import pathlib
import tempfile
import unittest

import pace_process

PARTS = ["build", "cpu", "gpu", "determinism", "training", "sandbox"]


class DoctorTest(unittest.TestCase):
    def test_the_object_names_every_part(self):
        done = pace_process.run("doctor", "--json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        found = json.loads(done.stdout)
        self.assertEqual(list(found), PARTS)
        for part in found.values():
            self.assertEqual(list(part), ["what", "lacks"])
            self.assertTrue(part["what"])
        self.assertIn("kernels for", found["cpu"]["what"])

    def test_the_lines_are_those_of_the_object(self):
        found = json.loads(pace_process.run("doctor", "--json").stdout)
        done = pace_process.run("doctor")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for name in PARTS:
            self.assertIn(f"{name:<15} ", done.stdout)
        self.assertIn(found["cpu"]["what"], done.stdout)

    def test_a_device_that_is_not_there_is_one_line(self):
        gpu = json.loads(pace_process.run("doctor", "--json").stdout)["gpu"]
        if gpu["what"] != "none":
            self.skipTest("there is a GPU")
        self.assertIn("device = cuda: ", gpu["lacks"])
        with tempfile.TemporaryDirectory() as folder:
            for command in (["bench", "decode", "--device", "cuda", "--no-python"],
                            ["bench", "train", "--device", "cuda", "--no-python"],
                            ["bench", "methods", "--device", "cuda"],
                            ["train", "tiny", "device=cuda", "--out", f"{folder}/run"],
                            ["sft", "tiny-base", "device=cuda", "--fresh", "--out",
                             f"{folder}/model"],
                            ["eval", "tiny", "device=cuda"]):
                with self.subTest(command=command[:2]):
                    done = pace_process.run(*command)
                    self.assertEqual(done.returncode, 2)
                    self.assertEqual(done.stderr, f"pace: {gpu['lacks']}\n")
            self.assertFalse((pathlib.Path(folder) / "run").exists())

    def test_decoding_is_measured_on_the_cpu_too(self):
        done = pace_process.run("bench", "decode", "--no-python", "--repetitions", "1",
                                "--context", "8", "--batch", "1", "2", "--threads", "1")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        report = json.loads(done.stdout)
        names = [m["name"] for m in report["measurements"]]
        self.assertIn("tiny_batch_2", names)


if __name__ == "__main__":
    unittest.main()
