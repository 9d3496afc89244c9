"""Runs under virtual time, without tensors."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

from . import _core

Progress = Callable[[int, int], None]


class Simulation:
    """What a simulated run gave: `rows`, one dictionary per step as in metrics.jsonl, and
    `totals`."""

    __slots__ = ("rows", "totals")

    def __init__(self, rows: list[dict], totals: dict):
        self.rows = rows
        self.totals = totals

    def column(self, name: str) -> list:
        """One metric by step; None where a step has no value."""
        return [row.get(name) for row in self.rows]

    def __repr__(self):
        return f"Simulation({len(self.rows)} steps, {self.totals['seconds']:.0f} s)"


class Sweep:
    """What a grid of settings gave: `rows` in grid order, the index of the `best`, and `advice`,
    one line."""

    __slots__ = ("rows", "best", "advice")

    def __init__(self, rows: list[dict], best: int, advice: str):
        self.rows = rows
        self.best = best
        self.advice = advice

    def __repr__(self):
        return f"Sweep({len(self.rows)} runs: {self.advice})"


def simulate(settings: _core.Settings, *, admission=None, supply=None,
             record: str | os.PathLike | None = None, name: str | None = None,
             progress: Progress | None = None) -> Simulation:
    """Simulates a run. The same settings give the same bytes.

    `admission` and `supply` are policies of your own in place of the settings'. `record` names a
    new run directory. `progress(done, all)` is called after every step. The GIL is released
    except while Python code of yours runs.

    >>> import pace
    >>> run = pace.simulate(pace.Settings("math-4b", "run.num_steps=4"))
    >>> run
    Simulation(4 steps, 699 s)
    >>> run.column("step")
    [0.0, 1.0, 2.0, 3.0]
    """
    directory = None if record is None else os.fspath(record)
    title = name or (os.path.basename(os.path.normpath(directory)) if directory else "python")
    return Simulation(*_core.simulate(settings, admission, supply, directory, title, progress))


def sweep(settings: _core.Settings, axes: Mapping[str, Sequence] | Sequence[str], *,
          threads: int = 0, progress: Progress | None = None) -> Sweep:
    """Simulates a grid of settings on all cores and recommends one.

    `axes` maps keys to their values; the key `method` takes names of methods.

    >>> import pace
    >>> result = pace.sweep(pace.Settings("math-4b", "run.num_steps=4"),
    ...                     {"supply.threshold": [1, 2]}, threads=1)
    >>> [row["assignments"] for row in result.rows]
    [['supply.threshold=1'], ['supply.threshold=2']]
    """
    if isinstance(axes, Mapping):
        axes = [f"{key}=" + ",".join(str(value) for value in values)
                for key, values in axes.items()]
    return Sweep(*_core.sweep(settings, list(axes), threads, progress))
