"""pace sft, train, eval from end to end: whole runs, replayed, refused."""

import math
import pathlib
import shutil
import struct
import subprocess
import tempfile
import unittest

import pace_process
from small_run import SHAPE, SMALL

class TrainTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.model = cls.folder / "model"
        cls.sft = pace_process.run("sft", "tiny", *SMALL, *SHAPE, "sft.num_steps=3", "--fresh",
                                   "--out", cls.model, cwd=cls.folder)

    def command(self, *arguments):
        return [str(pace_process.BINARY), "train", "tiny", *SMALL, f"policy.model={self.model}",
                *map(str, arguments)]

    def train(self, *arguments):
        done = subprocess.run(self.command(*arguments), capture_output=True, text=True,
                              cwd=self.folder, timeout=pace_process.PATIENCE, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def test_supervised_training_writes_a_model_and_says_how_good_it_is(self):
        self.assertEqual(self.sft.returncode, 0, self.sft.stderr)
        self.assertIn("held_out: mean@2", self.sft.stderr)
        for name in ("config.json", "model.safetensors", "tokenizer.json"):
            self.assertTrue((self.model / name).exists(), name)

    def test_a_run_directory_is_whole(self):
        run = self.folder / "whole"
        done = self.train("run.num_steps=4", "run.evaluate_every=2", "run.checkpoint_every=2",
                          "--out", run)
        self.assertIn(f"report: {run}/report.html", done.stdout)
        rows = pace_process.json_lines((run / "metrics.jsonl").read_text())
        self.assertEqual([row["step"] for row in rows], [0, 1, 2, 3])
        for row in rows:
            self.assertIn("train/grad_norm", row)
            parts = sum(row[f"time/{part}"] for part in (
                "wait_data", "train", "sync", "rescore_visible", "other"))
            self.assertAlmostEqual(parts, row["time/step"], places=9)
        evaluations = pace_process.json_lines((run / "eval.jsonl").read_text())
        self.assertEqual([line["step"] for line in evaluations], [0, 2, 4])
        self.assertIn("eval/held_out/mean@2", evaluations[0])
        self.assertEqual(len(list(run.glob("events.out.tfevents.*"))), 1)
        self.assertGreater((run / "report.html").stat().st_size, 10000)
        responses = pace_process.json_lines((run / "responses.jsonl").read_text())
        self.assertTrue(all(line["turns"] and line["prompt"] for line in responses))
        self.assertIn("held_out", {line.get("benchmark") for line in responses})
        self.assertEqual(done.stderr.count("step 4 of 4"), 1, done.stderr)
        self.assertIn("warning: PACE is warming up", done.stderr)
        self.assertNotIn("cost/gpu_time", rows[0])

    def test_what_was_typed_is_what_is_shown_and_what_is_ignored_is_said(self):
        run = self.folder / "typed"
        done = self.train("run.num_steps=2", "cluster.rollout_gpus=4", "--method", "m2po",
                          "--out", run)
        self.assertIn("M2PO: 2 steps in", done.stdout)
        self.assertIn("warning: --driver runtime does not read cluster.slots, cluster.train_seconds, "
                      "cluster.rollout_gpus", done.stderr)
        warnings = pace_process.json_lines((run / "warnings.jsonl").read_text())
        self.assertEqual(warnings[0]["kind"], "ignored_settings")
        page = (run / "report.html").read_text()
        self.assertIn("<h1>typed: M2PO on list_sum</h1>", page)
        self.assertIn("cluster.rollout_gpus", page)

    def test_rounded_rollouts_without_recomputed_ratios_are_pointed_out(self):
        for ratio, kinds in ("rollout", ["rounded_rollouts"]), ("recomputed", []):
            run = self.folder / ratio
            done = self.train("run.num_steps=2", "engine.quantization=fp8", f"train.ratio={ratio}",
                              "--driver", "lab", "--out", run)
            self.assertEqual("set train.ratio=recomputed" in done.stderr, bool(kinds), done.stderr)
            warnings = pace_process.json_lines((run / "warnings.jsonl").read_text())
            self.assertEqual([line["kind"] for line in warnings if line["kind"] == "rounded_rollouts"],
                             kinds)

    def test_weights_that_are_not_numbers_are_refused(self):
        broken = self.folder / "broken"
        shutil.copytree(self.model, broken)
        data = bytearray((broken / "model.safetensors").read_bytes())
        data[-4:] = struct.pack("<f", math.nan)
        (broken / "model.safetensors").write_bytes(data)
        for command in (["train", "tiny", f"policy.model={broken}"],
                        ["eval", "tiny", f"policy.model={broken}"],
                        ["generate", "--model", broken, "--greedy", "--max-tokens", "2"]):
            done = pace_process.run(*command, cwd=self.folder)
            self.assertNotEqual(done.returncode, 0, command)
            self.assertIn("1 of", done.stderr)
            self.assertIn("elements are NaN or infinite", done.stderr)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)

    def test_replay_gives_every_recorded_verdict(self):
        for driver, advantage in (("lab", "grpo"), ("runtime", "grpo"), ("lab", "remax")):
            run = self.folder / f"replay-{driver}-{advantage}"
            self.train("run.num_steps=12", "run.checkpoint_every=5", "record.level=full",
                       f"train.advantage={advantage}", "--driver", driver, "--out", run)
            recorded = [(line["group"], line["verdict"])
                        for line in pace_process.json_lines((run / "decisions.jsonl").read_text())]
            for name in ("trace.jsonl", "events.jsonl"):
                replayed = pace_process.run("replay", run / name)
                self.assertEqual(replayed.returncode, 0, replayed.stderr)
                lines = pace_process.json_lines(replayed.stdout)
                verdicts = [(line["group"], line["verdict"]) for line in lines if "verdict" in line]
                self.assertEqual(verdicts, recorded, f"{driver} {name}")

    def test_bad_input_is_one_line(self):
        for arguments, expected in [
                (["train"], "name a preset"),
                (["train", "tiny", "train.loss=nothing"], "nothing"),
                (["train", "tiny", "train.reduction=sum"], "train.reduction"),
                (["train", "tiny", "train.loss=reinforce", "train.loss_settings=[dual_clip=10]"],
                 "dual_clip"),
                (["train", "tiny", "train.kl_coef=0.1", "train.kl_estimator=k9"],
                 "train.kl_estimator = k9: must be one of k1, k2, k3, abs"),
                (["train", "tiny", "train.kl_target=0.1"], "train.kl_reward_coef, which is 0"),
                (["train", "tiny", "train.opob=true", "train.advantage=gae"],
                 "train.advantage = gae would not be asked"),
                (["train", "tiny", "train.ess_settings=rule=linear"],
                 "train.ess_learning_rate = false has no options"),
                (["train", "tiny", "policy.model=/nowhere"],
                 "policy.model = /nowhere: there is no such folder"),
                (["train", "smollm2-words", "policy.model=models/smollm2"], "scripts/get_smollm2"),
                (["eval", "smollm2-gsm8k", "policy.model=models/none"], "scripts/get_smollm2"),
                (["train", "tiny", "generation.max_tokens=100000"], "generation.max_tokens"),
                (["train", "--resume", "/nowhere"], "/nowhere"),
                (["eval", "tiny", "task.benchmarks=/nowhere.jsonl"], "/nowhere.jsonl"),
                (["sft", "tiny", "--out", self.model], "not empty")]:
            if arguments[0] != "sft" and "policy.model" not in " ".join(map(str, arguments)):
                arguments = arguments + ([f"policy.model={self.model}"] if len(arguments) > 1
                                         and arguments[1] == "tiny" else [])
            done = pace_process.run(*arguments, cwd=self.folder)
            self.assertEqual(done.returncode, 2, f"{arguments}: {done.stderr}")
            lines = [line for line in done.stderr.splitlines() if line.startswith("pace: ")]
            self.assertEqual(len(lines), 1, f"{arguments}: {done.stderr}")
            self.assertIn(expected, lines[0])


if __name__ == "__main__":
    unittest.main()
