"""Runs whose responses use the tool: `pace train tiny-retool`, saved, killed, resumed, replayed."""

import json
import os
import pathlib
import random
import subprocess
import tempfile
import unittest
import venv

import killed_run
import pace_process

# The model inside pace on a small batch. Calls take long against a step, so that
# checkpoints and syncs find many of them under way.
SMALL = ["batch.num_groups=4", "batch.group_size=4", "supply.threshold=3",
         "admission.min_observations=4", "cluster.slots=32", "engine.slots=32", "engine.kv_mib=16",
         "cluster.train_seconds=0.2", "workload.tool_latency_s=0.3", "workload.tool_concurrency=4",
         "task.max_numbers=3", "generation.max_tokens=200", "task.held_out_problems=12",
         "evaluation.num_responses=2", "run.evaluate_every=0", "record.level=full"]
# PACE_LONG_TESTS=1 makes longer runs and kills more often.
STEPS, KILLS = (24, 4) if os.environ.get("PACE_LONG_TESTS") else (12, 2)
# What a model might write; which attack comes first depends on the program alone.
HOSTILE = """
import builtins, zlib
ATTACKS = [
    "resource.prlimit(1, resource.RLIMIT_NOFILE, (0, 0)); time.sleep(1)",
    "os.sched_setscheduler(1, os.SCHED_IDLE, os.sched_param(0))",
    "os.kill(-1, 9); os.abort()",
    "os.kill(os.getpid(), signal.SIGSTOP)",
    "os.closerange(0, 4096); os._exit(1)",
    "held = [bytearray(1 << 26) for each in range(1000)]",
    "[os.fork() for each in range(1000)]",
    "sys.exit(10 ** 100)",
]
python_compile = builtins.compile
def hostile_compile(source, filename, *arguments, **options):
    if filename == "main.py" and source != "print(1)":
        attack = ATTACKS[zlib.crc32(source.encode()) % len(ATTACKS)]
        source = "import os, resource, signal, sys, time\\n" + attack + "\\n" + source
    return python_compile(source, filename, *arguments, **options)
builtins.compile = hostile_compile
"""


def isolation_is_there():
    done = pace_process.run("eval", "tiny-retool", *SMALL, "task.held_out_problems=1")
    return done.returncode == 0, done.stderr


class RetoolTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        there, why = isolation_is_there()
        if not there:
            raise unittest.SkipTest(f"no sandbox here: {why}")
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))

    def command(self, *arguments):
        return [str(pace_process.BINARY), "train", "tiny-retool", *SMALL, *map(str, arguments)]

    def train(self, *arguments):
        done = subprocess.run(self.command(*arguments), capture_output=True, text=True,
                              cwd=self.folder, timeout=pace_process.PATIENCE, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def weights(self, run):
        newest = max((run / "checkpoints").glob("step-*"), key=lambda folder: folder.name)
        return (newest / "model.safetensors").read_bytes()

    def lab(self, name, *arguments):
        run = self.folder / name
        self.train(f"run.num_steps={STEPS}", "run.checkpoint_every=4", "--driver", "lab",
                   "--out", run, *arguments)
        return run

    def test_what_a_response_did_is_recorded(self):
        run = self.folder / "recorded"
        self.train("run.num_steps=6", "run.evaluate_every=3", "--driver", "lab", "--out", run)
        lines = pace_process.json_lines((run / "rollouts.jsonl").read_text())
        called = [line for line in lines if line["tool_calls"] > 0]
        self.assertGreater(len(called), 10)
        for line in lines:
            self.assertLessEqual(line["tool_failures"], line["tool_calls"])
            self.assertLessEqual(line["turns"], 8)
            # A turn follows every call, unless the reply did not fit.
            self.assertIn(line["turns"] - line["tool_calls"], (0, 1))
            self.assertEqual(line["tool_seconds"] > 0, line["tool_calls"] > 0)
            if not line["correct"]:
                # The question, the turns, and the replies between them.
                turns = 1 + line["turns"] + (line["turns"] - 1)
                shaped = min(-0.6, -1 + 0.05 * (turns - 2))
                self.assertAlmostEqual(line["reward"], shaped, places=6, msg=line)
        rows = pace_process.json_lines((run / "metrics.jsonl").read_text())
        self.assertTrue(all("tools/success" in row for row in rows))
        evaluation = pace_process.json_lines((run / "eval.jsonl").read_text())[0]
        for name in ("turns", "tool_calls", "tool_success"):
            self.assertIn(f"eval/held_out/{name}", evaluation)
        report = (run / "report.html").read_text()
        self.assertIn("Tool calls that succeed", report)

    def test_the_lab_gives_the_same_bytes_however_often_it_is_killed(self):
        whole = self.lab("whole")
        again = self.lab("again")
        names = ("metrics.jsonl", "decisions.jsonl", "events.jsonl", "rollouts.jsonl")
        for name in names:
            self.assertEqual((whole / name).read_bytes(), (again / name).read_bytes(), name)
        self.assertEqual(self.weights(whole), self.weights(again))
        killed, times = self.killed("lab")
        self.assertGreater(times, 0)
        for name in names:
            self.assertEqual((whole / name).read_bytes(), (killed / name).read_bytes(), name)
        self.assertEqual(self.weights(whole), self.weights(killed))
        # Some checkpoint was written while the tool worked.
        saved = [json.loads((folder / "run.json").read_text())
                 for folder in (whole / "checkpoints").glob("step-*")]
        self.assertTrue(any(run.get("calls") for run in saved))

    def killed(self, driver):
        """A finished run that was killed at random moments, and how often it was."""
        chance = random.Random(3)
        run = self.folder / f"{driver}-killed"
        command = self.command(f"run.num_steps={STEPS}", "run.checkpoint_every=4",
                               "--driver", driver, "--out", run)
        waits = [chance.uniform(1, 4) for _ in range(KILLS)]
        return run, killed_run.finish(command, run, waits, self.folder)

    def test_the_runtime_goes_on_with_calls_under_way(self):
        run, _ = self.killed("runtime")
        trained = [line["group"]
                   for line in pace_process.json_lines((run / "decisions.jsonl").read_text())
                   if line["verdict"] == "admit"]
        self.assertEqual(len(trained), STEPS * 4)
        self.assertEqual(len(set(trained)), len(trained))
        for name in ("trace.jsonl", "events.jsonl"):
            replayed = pace_process.run("replay", run / name)
            self.assertEqual(replayed.returncode, 0, replayed.stderr)

    def hostile_python(self):
        """An interpreter that puts an attack before every program but the sandbox's first."""
        # Not in /tmp, of which programs have their own.
        home = pathlib.Path(self.enterContext(
            tempfile.TemporaryDirectory(dir=pace_process.BINARY.parent)))
        home.chmod(0o755)  # run by root, it is nobody who starts it
        venv.create(home, symlinks=True)
        site = next(home.glob("lib/python3*/site-packages"))
        (site / "sitecustomize.py").write_text(HOSTILE)
        return f"tools.python={home}/bin/python3"

    def test_hostile_programs_fail_and_do_not_end_a_run(self):
        python = self.hostile_python()
        for driver in ("lab", "runtime"):
            with self.subTest(driver=driver):
                run = self.folder / f"hostile-{driver}"
                done = self.train(python, "tools.timeout=0.5", "run.num_steps=3",
                                  "--driver", driver, "--out", run)
                self.assertIn("sandbox: isolated", done.stderr)
                rows = pace_process.json_lines((run / "metrics.jsonl").read_text())
                self.assertEqual(len(rows), 3)
                lines = pace_process.json_lines((run / "rollouts.jsonl").read_text())
                calls = sum(line["tool_calls"] for line in lines)
                self.assertGreater(calls, 10)
                self.assertEqual(sum(line["tool_failures"] for line in lines), calls)

    def test_a_model_without_a_chat_template_is_refused(self):
        done = pace_process.run("train", "tiny", "tools.use=code_interpreter", "--out",
                                self.folder / "refused")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("chat template", done.stderr)
        self.assertFalse((self.folder / "refused").exists())


if __name__ == "__main__":
    unittest.main()
