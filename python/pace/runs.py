"""What runs recorded: run directories, replay, reports."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

from . import _core


class Run:
    """A run directory (docs/run-directory.md), of a run that has ended or goes on.

    Files are read when asked for. A last line that was cut off is left out.

    >>> import pace, tempfile, os
    >>> folder = os.path.join(tempfile.mkdtemp(), "run")
    >>> settings = pace.Settings("math-4b", "run.num_steps=3")
    >>> _ = pace.simulate(settings, record=folder)
    >>> run = pace.Run(folder)
    >>> run
    Run('run', sim, 3 steps)
    >>> run.settings["run.num_steps"], run.column("step")
    (3, [0, 1, 2])
    >>> sum(row["verdict"] == "admit" for row in run.decisions())
    36
    """

    def __init__(self, directory: str | os.PathLike):
        self.directory = Path(directory)
        try:
            self.manifest: dict = json.loads((self.directory / "manifest.json").read_text())
        except OSError as error:
            raise _core.NotFound(f"{self.directory}: is no run directory "
                                 f"(manifest.json: {error.strerror})") from None
        except ValueError as error:
            raise _core.DataLoss(f"{self.directory}/manifest.json: {error}") from None

    @property
    def name(self) -> str:
        return self.manifest.get("name", self.directory.name)

    @property
    def settings(self) -> _core.Settings:
        return _core.Settings(str(self.directory / "config.yaml"))

    @property
    def config(self) -> str:
        """config.yaml as text."""
        return (self.directory / "config.yaml").read_text()

    def metrics(self) -> list[dict]:
        """One row per training step."""
        return list(self.lines("metrics.jsonl"))

    def evaluations(self) -> list[dict]:
        return list(self.lines("eval.jsonl"))

    def decisions(self) -> Iterator[dict]:
        """Every verdict, in order."""
        return self.lines("decisions.jsonl")

    def responses(self) -> Iterator[dict]:
        """Sampled responses with their texts."""
        return self.lines("responses.jsonl")

    def rollouts(self) -> Iterator[dict]:
        return self.lines("rollouts.jsonl")

    def warnings(self) -> list[dict]:
        return list(self.lines("warnings.jsonl"))

    def column(self, name: str) -> list:
        """One metric by step; None where a step has no value."""
        return [row.get(name) for row in self.metrics()]

    def lines(self, name: str) -> Iterator[dict]:
        """The lines of a record and of the parts that continue it; none if there is no file."""
        for path in self._parts(name):
            with open(path, "rb") as file:
                for number, line in enumerate(file, 1):
                    try:
                        yield json.loads(line)
                    except ValueError as error:
                        if not line.endswith(b"\n"):
                            return
                        raise _core.DataLoss(f"{path}:{number}: {error}") from None

    def _parts(self, name: str) -> Iterator[Path]:
        path, part = self.directory / name, 0
        while path.exists():
            yield path
            part += 1
            path = self.directory / f"{name}.{part}"

    def __repr__(self):
        return f"Run({self.name!r}, {self.manifest.get('driver')}, {len(self.metrics())} steps)"


def replay_lines(trace: str | os.PathLike, config: str | os.PathLike | None = None, *,
                 snapshot: str | os.PathLike = "") -> list[str]:
    """The verdicts of a trace or of a run's events.jsonl, computed again: the lines that
    `pace replay` prints. `config` is JSON with admission options or a run's YAML; by default
    config.yaml beside the trace."""
    if config is None:
        config = Path(trace).parent / "config.yaml"
        if not config.exists():
            raise _core.NotFound(f"{config}: not there (name the options with config)")
    return _core.replay_lines(os.fspath(trace), os.fspath(config), os.fspath(snapshot))


def replay(trace: str | os.PathLike, config: str | os.PathLike | None = None, *,
           snapshot: str | os.PathLike = "") -> list[dict]:
    """The same as dictionaries: one per step and per draw, in order."""
    return [json.loads(line) for line in replay_lines(trace, config, snapshot=snapshot)]


def report(runs, path: str | os.PathLike) -> None:
    """Writes one page of HTML that compares runs, as `pace report` does."""
    runs = [runs] if isinstance(runs, (str, os.PathLike, Run)) else list(runs)
    folders = [os.fspath(run.directory if isinstance(run, Run) else run) for run in runs]
    _core.write_report(folders, os.fspath(path))
