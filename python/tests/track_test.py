"""pace.track: every step arrives once, however often the command runs.

The trackers themselves are tried where they are installed: wandb offline, mlflow in a folder,
TensorBoard's files read back.
"""

import importlib.util
import json
import os
import pathlib
import sys
import tempfile
import unittest

import pace
from pace import track


class FakeSink:
    """Remembers what it got."""

    seen = []
    texts = []

    def __init__(self, run, progress, arguments):
        self.id = progress.id

    def metrics(self, step, values):
        FakeSink.seen.append((self.id, step, values))

    def responses(self, rows):
        FakeSink.texts.extend(track.text_of(row) for row in rows)

    def close(self):
        pass


def needs(module):
    return unittest.skipIf(importlib.util.find_spec(module) is None,
                           f"NOT CHECKED: {module} is not installed here")


class TrackTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.run_folder = self.folder / "run"
        pace.simulate(pace.Settings("math-4b", "run.num_steps=5"), record=self.run_folder)
        (self.run_folder / "eval.jsonl").write_text(
            '{"step": 2, "time": 1.0, "eval/held_out/mean@2": 0.5}\n')
        (self.run_folder / "responses.jsonl").write_text(
            json.dumps({"step": 1, "reward": 1.0, "verdict": "admit", "prompt": "1+1=",
                        "turns": [{"text": "2"}]}) + "\n")
        FakeSink.seen, FakeSink.texts = [], []
        track.SINKS["fake"] = FakeSink
        self.addCleanup(track.SINKS.pop, "fake")

    def keep_lines(self, number):
        path = self.run_folder / "metrics.jsonl"
        lines = path.read_text().splitlines(True)
        path.write_text("".join(lines[:number]))
        return lines

    def test_every_step_is_sent_once(self):
        lines = self.keep_lines(2)
        self.assertEqual(track.track(str(self.run_folder), "fake"), 4)
        self.assertEqual(track.track(str(self.run_folder), "fake"), 0)
        # The run goes on, from an earlier checkpoint.
        (self.run_folder / "metrics.jsonl").write_text("".join(lines))
        track.track(str(self.run_folder), "fake")
        steps = [step for _, step, values in FakeSink.seen if "time/step" in values]
        self.assertEqual(steps, [0, 1, 2, 3, 4])
        self.assertEqual(len({name for name, _, _ in FakeSink.seen}), 1)
        self.assertEqual(FakeSink.texts, ["1+1=2"])
        evaluated = [step for _, step, values in FakeSink.seen if "eval/held_out/mean@2" in values]
        self.assertEqual(evaluated, [2])

    def test_settings_go_along(self):
        config = track.config_of(pace.Run(self.run_folder))
        self.assertEqual(config["run.num_steps"], "5")
        self.assertIn("admission.policy", config)

    def test_errors_are_one_line(self):
        self.assertEqual(track.main([str(self.folder), "--to", "wandb"]), 2)
        (self.run_folder / "track-fake.json").write_text("[]")
        with self.assertRaises(pace.DataLoss):
            track.track(str(self.run_folder), "fake")

    @needs("mlflow")
    def test_mlflow_gets_a_run_once(self):
        import mlflow

        os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
        uri = (self.folder / "mlruns").as_uri()
        for _ in range(2):
            track.track(str(self.run_folder), "mlflow", uri=uri, project="p")
        client = mlflow.tracking.MlflowClient(tracking_uri=uri)
        experiment = client.get_experiment_by_name("p").experiment_id
        found, = client.search_runs([experiment])
        history = client.get_metric_history(found.info.run_id, "time/step")
        self.assertEqual(sorted(metric.step for metric in history), [0, 1, 2, 3, 4])
        rows = pace.Run(self.run_folder).metrics()
        by_step = {metric.step: metric.value for metric in history}
        self.assertEqual([by_step[row["step"]] for row in rows], [row["time/step"] for row in rows])
        self.assertEqual(found.data.params["run.num_steps"], "5")
        artifacts = client.list_artifacts(found.info.run_id, "responses")
        self.assertEqual([item.path for item in artifacts], ["responses/step-000001.txt"])

    @needs("wandb")
    def test_wandb_takes_it_offline(self):
        for _ in range(2):
            track.track(str(self.run_folder), "wandb", offline=True, project="p")
        folders = list((self.run_folder / "wandb").glob("offline-run-*"))
        self.assertGreaterEqual(len(folders), 1)
        self.assertEqual(len({folder.name.rsplit("-", 1)[1] for folder in folders}), 1)

    @needs("tensorboard")
    def test_tensorboard_reads_it_back(self):
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        board = self.folder / "board"
        for _ in range(2):
            track.track(str(self.run_folder), "tensorboard", uri=str(board))
        reader = EventAccumulator(str(board))
        reader.Reload()
        self.assertEqual([event.step for event in reader.Scalars("time/step")], [0, 1, 2, 3, 4])
        self.assertEqual(reader.Tensors("response/0")[0].tensor_proto.string_val, [b"1+1=2"])


if __name__ == "__main__":
    # wandb's exit hook wants a number, and unittest leaves with a bool.
    sys.exit(int(not unittest.main(exit=False).result.wasSuccessful()))
