"""Commands with device=cuda, from end to end, on a machine that has a GPU."""

import json
import pathlib
import subprocess
import tempfile
import unittest

import killed_run
import pace_process

STEPS = 24


def has_gpu():
    found = json.loads(pace_process.run("doctor", "--json").stdout)
    return found["gpu"]["what"] != "none"


@unittest.skipUnless(has_gpu(), "there is no GPU, or the build has no CUDA")
class CudaCommandTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def rows(self, run):
        return pace_process.json_lines((run / "metrics.jsonl").read_text(encoding="utf-8"))

    def accuracies(self, run):
        lines = pace_process.json_lines((run / "eval.jsonl").read_text(encoding="utf-8"))
        return [line["eval/held_out/mean@4"] for line in lines]

    def test_every_method_learns_in_the_runtime(self):
        for method in ("sync", "async", "effective"):
            for compute in ("float32", "bf16"):
                with self.subTest(method=method, compute=compute):
                    run = self.folder / f"{method}-{compute}"
                    done = pace_process.run(
                        "train", "tiny", "--method", method, "device=cuda",
                        f"policy.compute={compute}", f"run.num_steps={STEPS}",
                        f"run.evaluate_every={STEPS}", "--out", run)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertEqual(len(self.rows(run)), STEPS)
                    manifest = json.loads((run / "manifest.json").read_text(encoding="utf-8"))
                    self.assertEqual(manifest["device"], "cuda")
                    before, after = self.accuracies(run)
                    self.assertGreater(after, before + 0.08)

    def test_the_lab_learns_as_on_the_cpu(self):
        found = {}
        for device in ("cpu", "cuda"):
            run = self.folder / device
            done = pace_process.run("train", "tiny", "--driver", "lab", f"device={device}",
                                    "run.num_steps=8", "run.evaluate_every=8", "--out", run)
            self.assertEqual(done.returncode, 0, done.stderr)
            found[device] = self.rows(run)
        # The first step's data are the same; later ones may differ in a sample.
        for name in ("train/loss", "train/grad_norm", "train/entropy"):
            expected = found["cpu"][0][name]
            self.assertAlmostEqual(found["cuda"][0][name], expected,
                                   delta=1e-3 * max(1, abs(expected)))

    def test_a_killed_run_goes_on(self):
        run = self.folder / "run"
        command = [str(pace_process.BINARY), "train", "tiny", "device=cuda", "run.num_steps=60",
                   "run.evaluate_every=0", "run.checkpoint_every=5", "supply.sync_interval=2",
                   "--out", str(run)]
        kills = killed_run.finish(command, run, [6, 5], self.folder)
        rows = self.rows(run)
        self.assertEqual([row["step"] for row in rows], sorted({row["step"] for row in rows}))
        self.assertEqual(len(rows), 60, kills)
        replayed = pace_process.run("replay", run / "trace.jsonl")
        self.assertEqual(replayed.returncode, 0, replayed.stderr)

    def test_what_does_not_fit_is_refused_with_the_numbers(self):
        for override, word in (("engine.kv_mib=900000", "KV caches"),
                               ("train.memory_gib=0.01", "train.memory_gib = 0.0: training needs")):
            with self.subTest(override=override):
                run = self.folder / "run"
                done = pace_process.run("train", "tiny", "device=cuda", override, "--out", run)
                self.assertEqual((done.returncode, len(done.stderr.splitlines())), (2, 1))
                self.assertIn(word, done.stderr)
                self.assertFalse(run.exists())

    def answers(self, command, device, lines, *arguments):
        done = pace_process.run(command, "--model", pace_process.SOURCE / "models" / "tiny",
                                "--device", device, *arguments, lines=lines)
        self.assertEqual(done.returncode, 0, done.stderr)
        return pace_process.json_lines(done.stdout)

    def test_texts_and_scores_are_those_of_the_cpu(self):
        prompts = [{"text": "12+34+5="}, {"text": "7+8="}]
        cpu, gpu = ([answer["text"]
                     for answer in self.answers("generate", device, prompts, "--greedy")]
                    for device in ("cpu", "cuda"))
        self.assertTrue(all(cpu))
        self.assertEqual(gpu, cpu)
        lines = [{"text": prompt["text"] + text} for prompt, text in zip(prompts, cpu, strict=True)]
        cpu, gpu = ([answer["logprobs"] for answer in self.answers("score", device, lines)]
                    for device in ("cpu", "cuda"))
        for ours, theirs in zip(gpu, cpu, strict=True):
            for x, y in zip(ours, theirs, strict=True):
                self.assertAlmostEqual(x, y, delta=1e-3)

    def test_supervised_training_runs_there(self):
        done = subprocess.run(
            [str(pace_process.BINARY), "sft", "tiny-base", "device=cuda", "sft.num_steps=5",
             "task.held_out_problems=8", "--fresh", "--out", str(self.folder / "model")],
            capture_output=True, text=True, timeout=pace_process.PATIENCE, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue((self.folder / "model" / "model.safetensors").exists())


if __name__ == "__main__":
    unittest.main()
