"""The coordinator: the whole controller as a state machine."""

from __future__ import annotations

import json

from . import _core


class Coordinator:
    """Decides what rollout workers and trainer do next: events in, commands out.

    Coordinator(settings, admission=None, supply=None): `admission` and `supply` are policies of
    your own. Events and commands are dictionaries in the form of events.jsonl
    (docs/run-directory.md). What a driver owes the coordinator is in docs/library.md.

    >>> import pace
    >>> settings = pace.Settings("math-4b", "batch.num_groups=1", "batch.group_size=1")
    >>> coordinator = pace.Coordinator(settings)
    >>> for command in coordinator.handle({"event": "worker_joined", "worker": 0, "max_groups": 1}):
    ...     print(command)
    {'command': 'sync_weights', 'worker': 0, 'version': 0}
    {'command': 'start_group', 'group': 0, 'worker': 0, 'prompt': 0}
    >>> coordinator.why_waiting()
    'step 0 has 0 of 1 groups; 1 groups run on 1 workers, 1 of them syncing weights'
    """

    def __init__(self, settings: _core.Settings, *, admission=None, supply=None):
        self._core = _core.Coordinator(settings, admission, supply)

    def handle(self, event: dict) -> list[dict]:
        """Takes one event and returns the commands to carry out, in order."""
        return [json.loads(command) for command in self._core.handle(json.dumps(event))]

    def owed(self) -> list[dict]:
        """The commands that are not answered yet, to carry out after `restore`."""
        return [json.loads(command) for command in self._core.owed()]

    def decisions(self) -> list[tuple[int, _core.Decision]]:
        """Group ids with the verdicts since the last call."""
        return self._core.decisions()

    def save(self) -> str:
        """The whole state as JSON."""
        return self._core.save()

    def restore(self, text: str) -> None:
        """Continues from a saved state, before the first event."""
        self._core.restore(text)

    def why_waiting(self) -> str:
        """One line: what the next step waits for."""
        return self._core.why_waiting()

    @property
    def version(self) -> int:
        """The trainer's policy version."""
        return self._core.version

    @property
    def stopped(self) -> bool:
        return self._core.stopped

    @property
    def occupancy(self) -> int:
        """Finished groups that wait to be drawn."""
        return self._core.occupancy

    @property
    def served(self) -> int | None:
        """The oldest version that a group started now could sample from."""
        return self._core.served

    @property
    def supply_view(self) -> _core.SupplyView:
        return self._core.supply_view
