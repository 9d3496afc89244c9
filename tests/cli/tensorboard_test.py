"""The event files of pace train as TensorBoard's own readers see them."""

import json
import pathlib
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

import pace_process

try:
    from tensorboard.backend.event_processing import event_accumulator
    from tensorboard.backend.event_processing import plugin_event_accumulator
    MISSING = ""
except ImportError as error:
    MISSING = f"NOT CHECKED: Python cannot import tensorboard: {error}"
    print(MISSING, file=sys.stderr)

SMALL = ["batch.num_groups=3", "batch.group_size=4", "supply.threshold=3",
         "task.max_numbers=4", "generation.max_tokens=12", "prefix.min_tokens=2",
         "admission.min_observations=4", "cluster.slots=24", "cluster.train_seconds=0.05",
         "engine.slots=24", "engine.kv_mib=4", "train.learning_rate=1e-2",
         "train.overlong_buffer=8", "task.held_out_problems=4", "evaluation.num_responses=2"]
STEPS = 16
CHECKPOINT_EVERY = 4


def as_float32(value):
    return struct.unpack("f", struct.pack("f", value))[0]


def expected_scalars(run):
    """By tag, what metrics.jsonl and eval.jsonl say: (step, wall time, value) in order."""
    start = json.loads((run / "manifest.json").read_text()).get("start", 0)
    scalars = {}
    for name in ("metrics.jsonl", "eval.jsonl"):
        for row in pace_process.json_lines((run / name).read_text()):
            for tag, value in row.items():
                if tag in ("step", "time") or value is None:
                    continue
                scalars.setdefault(tag, []).append(
                    (row["step"], start + row["time"], as_float32(value)))
    return scalars


@unittest.skipIf(MISSING, MISSING)
class TensorBoardTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))

    def command(self, driver, run):
        return [str(pace_process.BINARY), "train", "tiny", *SMALL, f"run.num_steps={STEPS}",
                "run.evaluate_every=4", f"run.checkpoint_every={CHECKPOINT_EVERY}",
                "--driver", driver, "--out", str(run)]

    def train(self, command):
        done = subprocess.run(command, capture_output=True, text=True, cwd=self.folder,
                              timeout=pace_process.PATIENCE, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def train_killed(self, driver, run):
        """A run that was killed behind a checkpoint, with steps on record that it lost."""
        process = subprocess.Popen(self.command(driver, run), stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, cwd=self.folder)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and process.poll() is None:
            metrics = run / "metrics.jsonl"
            num_rows = metrics.read_text().count("\n") if metrics.exists() else 0
            saved = list((run / "checkpoints").glob("step-*"))
            if saved and num_rows % CHECKPOINT_EVERY > 1:
                break
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        process.wait()
        self.assertEqual(process.returncode, -signal.SIGKILL, "it ended before it was killed")
        event_accumulator.EventAccumulator(str(run)).Reload()  # as it lies there, no error
        self.train([str(pace_process.BINARY), "train", "--resume", str(run)])

    def assert_board_shows_the_run(self, run):
        expected = expected_scalars(run)
        self.assertEqual([step for step, _, _ in expected["train/loss"]], list(range(STEPS)))
        self.assertGreater(len(expected["eval/held_out/mean@2"]), 3)
        self.assertEqual(len(list(run.glob("events.out.tfevents.*"))), 1)

        keep_all = {event_accumulator.SCALARS: 0, event_accumulator.TENSORS: 0}
        board = event_accumulator.EventAccumulator(str(run), size_guidance=keep_all)
        board.Reload()
        self.assertEqual(set(board.Tags()["scalars"]), set(expected))
        for tag, points in expected.items():
            seen = [(point.step, point.wall_time, point.value) for point in board.Scalars(tag)]
            self.assertEqual(seen, points, tag)

        # What the page itself reads: scalars come as tensors of its scalars plugin.
        page = plugin_event_accumulator.EventAccumulator(str(run), size_guidance=keep_all)
        page.Reload()
        self.assertEqual(set(page.PluginTagToContent("scalars")), set(expected))
        for tag, points in expected.items():
            seen = [(point.step, point.wall_time, point.tensor_proto.float_val[0])
                    for point in page.Tensors(tag)]
            self.assertEqual(seen, points, tag)

    def test_a_run_is_shown_as_it_was_recorded_killed_and_resumed_or_not(self):
        whole = self.folder / "lab"
        self.train(self.command("lab", whole))
        self.assert_board_shows_the_run(whole)

        killed = self.folder / "lab-killed"
        self.train_killed("lab", killed)
        self.assert_board_shows_the_run(killed)
        (name,) = [path.name for path in whole.glob("events.out.tfevents.*")]
        self.assertEqual((whole / name).read_bytes(), (killed / name).read_bytes())

    def test_a_run_by_the_wall_clock_carries_its_times(self):
        run = self.folder / "runtime-killed"
        began = time.time()
        self.train_killed("runtime", run)
        self.assert_board_shows_the_run(run)
        board = event_accumulator.EventAccumulator(str(run))
        board.Reload()
        times = [point.wall_time for point in board.Scalars("train/loss")]
        self.assertEqual(times, sorted(times))
        self.assertLess(abs(times[0] - began), 60)


if __name__ == "__main__":
    unittest.main()
