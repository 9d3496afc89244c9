"""Runs whose responses use the tool: `pace train tiny-retool`, saved, killed, resumed, replayed."""

import json
import os
import pathlib
import random
import tempfile
import unittest
import venv

import pace_process
import run_cases

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


class RetoolTest(run_cases.RetoolCase):
    def weights(self, run):
        newest = max((run / "checkpoints").glob("step-*"), key=lambda folder: folder.name)
        return (newest / "model.safetensors").read_bytes()

    def lab(self, name, *arguments):
        return self.trained(name, f"run.num_steps={STEPS}", "run.checkpoint_every=4",
                            "--driver", "lab", *arguments)

    def test_what_a_response_did_is_recorded(self):
        run = self.trained("recorded", "run.num_steps=6", "run.evaluate_every=3",
                           "--driver", "lab")
        lines = self.rows(run, "rollouts.jsonl")
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
        rows = self.rows(run)
        self.assertTrue(all("tools/success" in row for row in rows))
        evaluation = self.rows(run, "eval.jsonl")[0]
        for name in ("turns", "tool_calls", "tool_success"):
            self.assertIn(f"eval/held_out/{name}", evaluation)
        report = (run / "report.html").read_text()
        self.assertIn("Tool calls that succeed", report)

    def test_the_lab_gives_the_same_bytes_however_often_it_is_killed(self):
        whole = self.lab("whole")
        again = self.lab("again")
        names = ("metrics.jsonl", "decisions.jsonl", "events.jsonl", "rollouts.jsonl")
        self.assert_same(whole, again, names)
        self.assertEqual(self.weights(whole), self.weights(again))
        killed, times = self.killed_run("lab")
        self.assertGreater(times, 0)
        self.assert_same(whole, killed, names)
        self.assertEqual(self.weights(whole), self.weights(killed))
        # Some checkpoint was written while the tool worked.
        saved = [json.loads((folder / "run.json").read_text())
                 for folder in (whole / "checkpoints").glob("step-*")]
        self.assertTrue(any(run.get("calls") for run in saved))

    def killed_run(self, driver):
        chance = random.Random(3)
        return self.killed(f"{driver}-killed", [chance.uniform(1, 4) for _ in range(KILLS)],
                           f"run.num_steps={STEPS}", "run.checkpoint_every=4", "--driver", driver)

    def test_the_runtime_goes_on_with_calls_under_way(self):
        run, _ = self.killed_run("runtime")
        trained = [line["group"]
                   for line in self.rows(run, "decisions.jsonl")
                   if line["verdict"] == "admit"]
        self.assertEqual(len(trained), STEPS * 4)
        self.assertEqual(len(set(trained)), len(trained))
        for name in ("trace.jsonl", "events.jsonl"):
            replayed = pace_process.run("replay", run / name)
            self.assertEqual(replayed.returncode, 0, replayed.stderr)

    def hostile_python(self):
        """An interpreter that puts an attack before every program but the sandbox's first."""
        # Not in /tmp, of which programs have their own.
        build = pace_process.BINARY.parent.resolve()
        folder = "/var/tmp" if build.is_relative_to("/tmp") else build
        home = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(dir=folder)))
        home.chmod(0o755)  # run by root, it is nobody who starts it
        venv.create(home, symlinks=True)
        site = next(home.glob("lib/python3*/site-packages"))
        (site / "sitecustomize.py").write_text(HOSTILE)
        return f"tools.python={home}/bin/python3"

    def test_hostile_programs_fail_and_do_not_end_a_run(self):
        python = self.hostile_python()
        for driver in ("lab", "runtime"):
            with self.subTest(driver=driver):
                done, run = self.train(f"hostile-{driver}", python, "tools.timeout=0.5",
                                       "run.num_steps=3", "--driver", driver)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn("sandbox: isolated", done.stderr)
                rows = self.rows(run)
                self.assertEqual(len(rows), 3)
                lines = self.rows(run, "rollouts.jsonl")
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
