"""What `trainer.v1.sampler.sampler_kwargs` says.

    sampler_kwargs:
      method: pace           # pace, raw, waiting, generation, fair, stale-K, jit, observe
      record: runs/mine      # a run directory for `pace report` and `pace replay`; null: none
      settings: {}           # settings of pace by key, such as admission.window: 512
      poll_interval: 0.05    # seconds between two looks at TransferQueue while a step waits
      checkpoints: ckpt      # verl's trainer.default_local_dir, to resume from
      resume_from: null      # verl's trainer.resume_from_path, where that is used
      filter_groups_metric: null   # as algorithm.filter_groups.metric of the built-in sampler
      metrics: true          # whether pace/* is added to verl's metrics

Every process of a run reads the same options: the sampler in the driver, the client in the agent
loop workers.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping

from .. import _core

# Supply comes from verl in all of these but jit, which holds prompts back.
_ADMISSION_POLICIES = ("accept_all", "oldest_token", "pace", "pace_fair", "stale_k")


@dataclasses.dataclass(frozen=True)
class Options:
    """Checked options; `Options.read` makes them.

    >>> from pace.verl.options import Options
    >>> options = Options.read({"method": "raw", "settings": {"admission.window": 600}})
    >>> options.method, options.needs_scores, options.just_in_time
    ('raw', False, False)
    >>> options.session_settings(batch=12)["admission.window"]
    600
    >>> Options.read({"methd": "pace"})
    Traceback (most recent call last):
    ...
    pace.InvalidArgument: sampler_kwargs.methd: no such option (nearest: method)
    """

    method: str = "pace"
    record: str | None = None
    settings: tuple[tuple[str, object], ...] = ()
    poll_interval: float = 0.05
    checkpoints: str | None = None
    resume_from: str | None = None
    filter_groups_metric: str | None = None
    metrics: bool = True

    @staticmethod
    def read(kwargs: Mapping | None) -> Options:
        """Raises `pace.InvalidArgument` with one line on the first option that is wrong."""
        given = {} if kwargs is None else dict(kwargs)
        known = [field.name for field in dataclasses.fields(Options)]
        for key in given:
            if key not in known:
                raise _core.InvalidArgument(
                    f"sampler_kwargs.{key}: no such option (nearest: {_nearest(key, known)})")
        changes = given.get("settings") or {}
        if not isinstance(changes, Mapping):
            raise _core.InvalidArgument(
                f"sampler_kwargs.settings = {changes!r}: must map keys of pace to values")
        given["settings"] = tuple((str(key), value) for key, value in _flat(changes))
        given = {key: value for key, value in given.items() if value is not None}
        options = Options(**given)
        if not isinstance(options.poll_interval, (int, float)) or not options.poll_interval > 0:
            raise _core.InvalidArgument(
                f"sampler_kwargs.poll_interval = {options.poll_interval!r}: must be > 0 (seconds)")
        settings = options.session_settings(batch=1)
        if settings["admission.policy"] not in _ADMISSION_POLICIES:
            raise _core.InvalidArgument(
                f"sampler_kwargs.method = {options.method}: its admission policy, "
                f"{settings['admission.policy']}, needs pace's own supply")
        if settings["admission.cutoff"] == "pool":
            raise _core.InvalidArgument(
                "sampler_kwargs: admission.cutoff = pool: verl's buffer is drawn in completion "
                "order (use window)")
        return options

    @staticmethod
    def of_config(config) -> Options:
        """The options of a whole verl configuration."""
        return Options.read(config.trainer.v1.sampler.get("sampler_kwargs") or {})

    def session_settings(self, batch: int, group_size: int = 1,
                         threshold: float = 8) -> _core.Settings:
        """Settings of a run that trains `batch` groups per step with `threshold` warm-up batches.
        A version is a global step of verl, and every one of them syncs."""
        settings = _core.Settings("math-4b", set={
            "batch.num_groups": batch, "batch.group_size": group_size, "admission.window": "auto",
            "supply.threshold": threshold})
        settings = settings.with_method("async" if self.method == "observe" else self.method)
        for key, value in self.settings:
            settings[key] = value
        settings.validate()
        return settings

    @property
    def just_in_time(self) -> bool:
        return self.session_settings(batch=1)["supply.policy"] == "just_in_time"

    @property
    def needs_scores(self) -> bool:
        """Whether interrupted responses are scored when they are resubmitted."""
        settings = self.session_settings(batch=1)
        policy = settings["admission.policy"]
        if policy == "accept_all":
            return bool(settings["admission.observe"])
        return (policy in ("pace", "pace_fair")
                and settings["admission.generation_weight"] == "prefix")

    @property
    def score_limits(self) -> tuple[int, int]:
        """Policy tokens from which a prefix is scored, and the most that are."""
        settings = self.session_settings(batch=1)
        return settings["prefix.min_tokens"], settings["prefix.max_tokens"]

    def state_path(self, step: int) -> str | None:
        """Where the state after global step `step` is kept, if the run keeps checkpoints."""
        folder = self.resume_from
        if folder is None or not str(folder).rstrip("/").endswith(f"global_step_{step}"):
            if self.checkpoints is None:
                return None
            folder = os.path.join(self.checkpoints, f"global_step_{step}")
        return os.path.join(folder, "pace.json")


def _flat(changes: Mapping, prefix: str = ""):
    """admission.window: 5 and admission: {window: 5} are the same."""
    for key, value in changes.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _nearest(key: str, known: list[str]) -> str:
    def distance(a: str, b: str) -> int:
        row = list(range(len(b) + 1))
        for i, x in enumerate(a, 1):
            row, before = [i], row
            for j, y in enumerate(b, 1):
                row.append(min(before[j] + 1, row[-1] + 1, before[j - 1] + (x != y)))
        return row[-1]

    return min(known, key=lambda name: distance(key, name))
