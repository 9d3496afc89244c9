"""Copies a run to an experiment tracker, while it goes on or afterwards.

    python -m pace.track runs/tiny --to wandb --project mine
    python -m pace.track runs/tiny --to mlflow --uri file:./mlruns --follow
    python -m pace.track runs/tiny --to tensorboard --uri boards/tiny

Metrics and evaluations go by training step, settings as the run's configuration, sampled responses
as text. What was sent is remembered in the run directory (track-NAME.json), so the command can be
repeated, stopped and continued; no step is sent twice, not even of a run that was resumed from an
earlier checkpoint.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import uuid

from . import _core
from .runs import Run

_MOST_RESPONSES = 200  # of one call, so that a tracker is not flooded


class Progress:
    """What a tracker has got of a run: the last step of each file."""

    def __init__(self, run: Run, target: str):
        self._path = run.directory / f"track-{target}.json"
        self._state = {"id": uuid.uuid4().hex[:12], "sent": {}}
        if self._path.exists():
            try:
                self._state = json.loads(self._path.read_text())
                self._state["sent"], self._state["id"]
            except (ValueError, KeyError, TypeError):
                raise _core.DataLoss(f"{self._path}: is no record of what was sent "
                                     "(remove it to send all again)") from None

    @property
    def id(self) -> str:
        """Names the run at the tracker, the same in every call."""
        return self._state["id"]

    def set_id(self, name: str) -> None:
        self._state["id"] = name

    def new(self, rows, file: str):
        """The rows that were not sent yet."""
        last = self._state["sent"].get(file, -1)
        return [row for row in rows if row.get("step", -1) > last]

    def sent(self, file: str, step: int) -> None:
        self._state["sent"][file] = max(step, self._state["sent"].get(file, -1))

    def save(self) -> None:
        aside = self._path.with_suffix(".json.new")
        aside.write_text(json.dumps(self._state))
        os.replace(aside, self._path)


def values_of(row: dict) -> dict:
    """The numbers of a line, without its step."""
    return {key: float(value) for key, value in row.items()
            if key != "step" and isinstance(value, (int, float)) and not isinstance(value, bool)}


def text_of(response: dict) -> str:
    turns = "\n".join(turn.get("text", "") if isinstance(turn, dict) else str(turn)
                      for turn in response.get("turns", []))
    return f"{response.get('prompt', '')}{turns}"


class WandbSink:
    def __init__(self, run, progress, arguments):
        import wandb

        self._wandb = wandb
        mode = "offline" if arguments.offline else None
        self._run = wandb.init(project=arguments.project, name=run.name, id=progress.id,
                               resume="allow", config=config_of(run), mode=mode,
                               dir=str(run.directory))

    def metrics(self, step, values):
        self._run.log(values, step=step)

    def responses(self, rows):
        table = self._wandb.Table(columns=["step", "reward", "verdict", "text"])
        for row in rows:
            table.add_data(row["step"], row.get("reward"), row.get("verdict"), text_of(row))
        self._run.log({"responses": table})

    def close(self):
        self._run.finish()


class MlflowSink:
    def __init__(self, run, progress, arguments):
        import mlflow

        self._client = mlflow.tracking.MlflowClient(tracking_uri=arguments.uri or "file:./mlruns")
        experiment = self._client.get_experiment_by_name(arguments.project)
        number = (experiment.experiment_id if experiment
                  else self._client.create_experiment(arguments.project))
        found = self._client.search_runs([number], f"tags.pace_id = '{progress.id}'")
        if found:
            self._id = found[0].info.run_id
        else:
            created = self._client.create_run(number, run_name=run.name,
                                              tags={"pace_id": progress.id})
            self._id = created.info.run_id
            for key, value in config_of(run).items():
                self._client.log_param(self._id, key.replace("/", "."), str(value)[:500])
        self._entity = mlflow.entities.Metric

    def metrics(self, step, values):
        now = int(time.time() * 1000)
        self._client.log_batch(self._id, metrics=[
            self._entity(self._name(key), value, now, step) for key, value in values.items()])

    @staticmethod
    def _name(key):
        """mlflow's file store keeps names as paths: `time` cannot stand beside `time/step`."""
        return "run/time" if key == "time" else key.replace("@", "_at_")

    def responses(self, rows):
        by_step = {}
        for row in rows:
            by_step.setdefault(row["step"], []).append(row)
        for step, group in by_step.items():
            self._client.log_text(self._id, "\n\n".join(text_of(row) for row in group),
                                  f"responses/step-{step:06d}.txt")

    def close(self):
        self._client.set_terminated(self._id)


class TensorboardSink:
    def __init__(self, run, progress, arguments):
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
        from tensorboard.compat.proto.tensor_pb2 import TensorProto
        from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        self._event, self._summary, self._metadata = Event, Summary, SummaryMetadata
        self._tensor, self._shape = TensorProto, TensorShapeProto
        self._writer = EventFileWriter(arguments.uri or str(run.directory / "tensorboard"))

    def _add(self, step, values):
        self._writer.add_event(self._event(wall_time=time.time(), step=step,
                                           summary=self._summary(value=values)))

    def metrics(self, step, values):
        self._add(step, [self._summary.Value(tag=key, simple_value=value)
                         for key, value in values.items()])

    def responses(self, rows):
        metadata = self._metadata(
            plugin_data=self._metadata.PluginData(plugin_name="text"))
        for number, row in enumerate(rows):
            text = self._tensor(dtype=7, string_val=[text_of(row).encode()],
                                tensor_shape=self._shape(dim=[self._shape.Dim(size=1)]))
            self._add(row["step"], [self._summary.Value(tag=f"response/{number % 8}",
                                                        metadata=metadata, tensor=text)])

    def close(self):
        self._writer.close()


SINKS = {"wandb": WandbSink, "mlflow": MlflowSink, "tensorboard": TensorboardSink}


def config_of(run: Run) -> dict:
    """Settings by key, and what the manifest says."""
    out, section = {}, ""
    for line in run.config.splitlines():
        key, _, value = line.strip().partition(":")
        if line and not line.startswith(" "):
            section = key
        elif key:
            out[f"{section}.{key}"] = value.strip()
    for key in ("method", "driver", "seed"):
        if key in run.manifest:
            out[f"run.{key}" if key != "seed" else "seed"] = run.manifest[key]
    return out


def send(run: Run, progress: Progress, sink) -> int:
    """Sends what is new; returns the number of lines."""
    rows = {}
    for file, lines in (("metrics.jsonl", run.metrics()), ("eval.jsonl", run.evaluations())):
        for row in progress.new(lines, file):
            rows.setdefault(row["step"], {}).update(values_of(row))
            progress.sent(file, row["step"])
    for step in sorted(rows):
        sink.metrics(step, rows[step])
    responses = progress.new(run.responses(), "responses.jsonl")
    if responses:
        sink.responses(responses[-_MOST_RESPONSES:])
        progress.sent("responses.jsonl", max(row["step"] for row in responses))
    progress.save()
    return len(rows) + len(responses)


def ended(run: Run) -> bool:
    rows = run.metrics()
    return bool(rows) and rows[-1]["step"] + 1 >= run.settings["run.num_steps"]


def track(directory: str, to: str, *, project: str = "pace", uri: str | None = None,
          offline: bool = False, follow: bool = False, interval: float = 10) -> int:
    """Sends a run to a tracker and returns the number of lines. With `follow` it continues until
    the run has done its steps."""
    arguments = argparse.Namespace(project=project, uri=uri, offline=offline)
    run = Run(directory)
    if to not in SINKS:
        raise _core.InvalidArgument(f"to = {to}: must be {', '.join(SINKS)}")
    progress = Progress(run, to)
    try:
        sink = SINKS[to](run, progress, arguments)
    except ImportError as error:
        raise _core.Unavailable(f"{to}: not installed here (pip install {to}): {error}") from None
    progress.save()
    try:
        num_sent = send(run, progress, sink)
        while follow and not ended(run):
            time.sleep(interval)
            num_sent += send(run, progress, sink)
    finally:
        sink.close()
    return num_sent


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(prog="python -m pace.track", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", help="a run directory")
    parser.add_argument("--to", required=True, choices=list(SINKS))
    parser.add_argument("--project", default="pace", help="project or experiment there")
    parser.add_argument("--uri", help="mlflow: tracking URI; tensorboard: folder")
    parser.add_argument("--offline", action="store_true", help="wandb: write files only")
    parser.add_argument("--follow", action="store_true", help="until the run has done its steps")
    parser.add_argument("--interval", type=float, default=10, help="seconds between two looks")
    given = parser.parse_args(arguments)
    try:
        number = track(given.run, given.to, project=given.project, uri=given.uri,
                       offline=given.offline, follow=given.follow, interval=given.interval)
    except _core.Error as error:
        print(f"pace: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    print(f"{number} lines sent to {given.to}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
