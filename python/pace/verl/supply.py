"""How many prompts the engines get: just-in-time supply over verl's own.

verl submits `num_warmup_batches` batches at the start, one batch per step and one prompt per
eviction. `PromptSupply` decides how many of the submitted prompts start; the others wait in the
driver. Its bound is verl's own supply.

    supply.offer(12)                    # verl has submitted 12 prompts
    supply.finish(num_tokens=5000)      # a group has finished; fail() for one that failed
    supply.trainer_ready(seconds, waited)   # a step has ended
    start(supply.take())                # starts that many prompts, oldest first
    supply.train(12)                    # groups that go into training

Credits follow the groups as in the coordinator: a group holds one from its start until the sync
after its step, or until it is rejected or has failed. verl syncs before the next step begins, so
`trainer_ready` returns those of the step before.

Thread-safety: none; the driver of the run owns it.
"""

from __future__ import annotations

from collections.abc import Mapping

from .. import _core

_COUNTS = ("num_held", "num_running", "num_pooled", "num_selected", "num_started", "num_trained",
           "num_rejected", "num_lost", "num_tokens")


class PromptSupply:
    """Just-in-time supply as settings describe it.

    >>> import pace
    >>> from pace.verl.supply import PromptSupply
    >>> settings = pace.Settings("math-4b", "supply.threshold=4", method="jit")
    >>> supply = PromptSupply(settings)
    >>> supply.offer(60)
    >>> supply.take(), supply.num_held
    (36, 24)
    """

    def __init__(self, settings: _core.Settings):
        self._policy = _core.SupplyPolicy(settings)
        for name in _COUNTS:
            setattr(self, name, 0)
        self._limited = False

    def _view(self, num_awaiting_sync: int = 0) -> _core.SupplyView:
        view = _core.SupplyView()
        view.num_running = self.num_running
        view.num_pooled = self.num_pooled
        view.num_selected = self.num_selected
        view.num_awaiting_sync = num_awaiting_sync
        view.num_started = self.num_started
        view.num_trained = self.num_trained
        view.num_rejected = self.num_rejected
        view.num_lost = self.num_lost
        view.supply_limited = self._limited
        return view

    def offer(self, count: int) -> None:
        self.num_held += count

    def take(self) -> int:
        """How many of the held prompts start now."""
        allowed = max(0, self._policy.num_to_start(self._view()))
        count = min(self.num_held, allowed)
        self.num_held -= count
        self.num_running += count
        self.num_started += count
        # Engines have room at any time; where prompts remain, the policy held them back.
        self._limited = self._limited or self.num_held > 0
        return count

    def finish(self, num_tokens: int = 0) -> None:
        if self.num_running > 0:
            self.num_running -= 1
        else:
            self.num_started += 1  # it finished between the last draw and the checkpoint
        self.num_pooled += 1
        self.num_tokens += num_tokens
        self._policy.on_group_finished(self._view())

    def fail(self) -> None:
        self.num_running = max(0, self.num_running - 1)
        self.num_lost += 1

    def reject(self, count: int) -> None:
        """Groups that waited and were evicted."""
        self.num_pooled -= count
        self.num_rejected += count

    def train(self, count: int) -> None:
        self.num_pooled -= count
        self.num_selected += count

    def trainer_ready(self, seconds: float, waited: float) -> None:
        """A step of `seconds` has ended, of which it waited `waited` for groups."""
        trained, self.num_selected = self.num_selected, 0
        self.num_trained += trained
        self._policy.on_trainer_ready(self._view(num_awaiting_sync=trained), seconds, waited,
                                      self.num_tokens)
        self.num_tokens = 0
        self._limited = False

    @property
    def limit(self) -> float:
        """Groups that may be outstanding."""
        return self._policy.save()["limit"]

    def save(self) -> dict:
        return {"policy": self._policy.save(), "limited": self._limited,
                **{name: getattr(self, name) for name in _COUNTS}}

    def restore(self, state: Mapping) -> None:
        """After a restart verl submits every unfinished prompt again: none runs, none is held."""
        self._policy.restore(state["policy"])
        self._limited = state["limited"]
        for name in _COUNTS:
            setattr(self, name, state[name])
        self.num_started -= self.num_running
        self.num_running = self.num_held = 0
