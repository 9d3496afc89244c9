"""Admission by pace as a sampler of NeMo RL's single controller.

    async_rl:
      sampler:
        name: custom
        target: pace.nemo_rl:PaceSampler
        groups_per_step: 64
        max_staleness_versions: 8
        method: waiting
        record: runs/mine

The class implements NeMo RL's `PromptGroupSampler`
(nemo_rl/algorithms/async_utils/staleness_sampler.py) and imports nothing of it. `select` draws ready
groups in the order of their slots until the step's batch is full; rejected groups are removed from
buffer and data plane; `admit` lets a further batch start for every batch that was rejected.

A slot knows the weights before and after its rollout. Waiting staleness is exact. A response counts
as old as its first token, unless its tags hold `pace: {"segments": [[version, num_tokens], ...]}`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from . import _core
from .verl.admission import Admission
from .verl.options import Options

_POLL_SECONDS = 0.005


class PaceSampler:
    def __init__(self, buffer, *, groups_per_step: int, max_staleness_versions: int = 8,
                 method: str = "waiting", record: str | None = None,
                 settings: Mapping | None = None, groups_per_dispatch: int | None = None):
        """`groups_per_step`: groups of one training step. `max_staleness_versions`: batches that
        generation may run ahead. `groups_per_dispatch`: groups of one prompt batch."""
        if max_staleness_versions < 0:
            raise _core.InvalidArgument(f"max_staleness_versions = {max_staleness_versions}: must "
                                        "be >= 0 (0 = on-policy)")
        self._buffer = buffer
        self._window = max_staleness_versions
        self._groups_per_dispatch = groups_per_dispatch or groups_per_step
        self._admission = Admission(
            Options.read({"method": method, "record": record, "settings": settings or {}}),
            batch=groups_per_step)
        self._dispatch_index = -1

    # ---- the pump of rollouts ----

    async def admit(self, *, trainer_version_fn: Callable[[], int]) -> int | None:
        while self._dispatch_index >= (trainer_version_fn() + self._window
                                       + self._admission.num_refilled // self._groups_per_dispatch):
            await asyncio.sleep(_POLL_SECONDS)
        self._dispatch_index += 1
        return None

    def set_dispatch_index(self, resume_from_step: int) -> None:
        if resume_from_step < 0:
            raise ValueError(f"resume_from_step must be non-negative, got {resume_from_step}")
        self._dispatch_index = resume_from_step - 1

    # ---- the pump of training ----

    async def select(self, *, current_train_weight: int, min_prompt_groups: int,
                     max_prompt_groups: int):
        if not 1 <= min_prompt_groups <= max_prompt_groups:
            raise ValueError(f"min_prompt_groups = {min_prompt_groups}: must be from 1 to "
                             f"max_prompt_groups, {max_prompt_groups}")
        buffer, admission = self._buffer, self._admission
        ready = {group: index for index, group in enumerate(buffer._group_ids)
                 if buffer.ready_list[index]}
        admission.see({group: self._tags(index) for group, index in ready.items()},
                      {group: buffer.start_weight_list[index] for group, index in ready.items()})
        if admission.occupancy == 0 and admission.num_admitted == 0:
            return None, 0
        admission.begin_step(current_train_weight)
        drawn = admission.draw(max_prompt_groups)
        chosen = drawn.admitted if len(drawn.admitted) >= min_prompt_groups else []
        metas = [buffer.meta_list[ready[group]] for group in chosen]
        admission.take(chosen)
        if drawn.rejected:
            await buffer.remove([ready[group] for group in drawn.rejected], remove_in_dp=True)
        if not chosen:
            return None, 0
        # Indices have moved with the removal above.
        places = {group: index for index, group in enumerate(buffer._group_ids)}
        await buffer.remove([places[group] for group in chosen], remove_in_dp=False)
        return metas[0].concat(*metas[1:]), len(metas)

    def _tags(self, index: int) -> list[dict]:
        meta = self._buffer.meta_list[index]
        start, end = self._buffer.start_weight_list[index], self._buffer.end_weight_list[index]
        lengths = meta.sequence_lengths or [1] * len(meta.sample_ids)
        tags = meta.tags or [{}] * len(meta.sample_ids)
        return [{**tag, "min_global_steps": start, "max_global_steps": max(start, end),
                 "response_len": length} for tag, length in zip(tags, lengths)]

    async def evict(self, *, current_train_weight: int) -> int:
        """Groups leave by a verdict in `select` alone."""
        return 0

    # ---- facts ----

    def should_abort_inflight(self, *, start_weight_version: int,
                              current_train_weight: int) -> bool:
        return False

    @property
    def is_on_policy(self) -> bool:
        return self._window == 0

    def required_buffer_capacity(self, groups_per_step: int) -> int | None:
        return groups_per_step * (self._window + 1) + self._groups_per_dispatch

    def metrics(self) -> dict[str, float]:
        """Of the step begun last."""
        return self._admission.metrics()

    def state_dict(self) -> dict:
        """In types of JSON."""
        return self._admission.save()
