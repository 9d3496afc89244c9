"""Which finished groups a step of verl trains on.

`Admission` is the sampler without verl: it knows the groups that wait in completion order, asks an
`AdmissionSession` for verdicts, and keeps counts, record and state. Versions count global steps:
global step g trains from version g - 1, which every replica serves when the step begins.

    admission = Admission(options, batch=64)
    admission.see({"uid-1": [tag, ...], ...})     # groups that are finished now
    admission.begin_step(g - 1)                   # once per global step; repeating changes nothing
    drawn = admission.draw(16)                    # verdicts until 16 groups are admitted
    evict(drawn.rejected); refill(len(drawn.rejected))
    train(drawn.admitted)                         # at most 16; fewer when the groups run out

A rejected group is forgotten: the caller evicts it and submits one prompt for it, so that
`num_refilled` equals the rejections at every moment. A group is drawn at most once per step.

`save` is the whole state in types of JSON; `restore` continues from it to the bit.

Thread-safety: none; the driver of the run owns it.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Mapping, Sequence

from .. import _core
from .options import Options

_FORMAT = 1
# The partition of TransferQueue in which agent loops announce finished groups.
ANNOUNCED = "pace_announced"


def uid_of(key: str) -> str:
    """The prompt of a trajectory's key, `{uid}_{session}_{index}`."""
    return key.split("_", 1)[0]


@dataclasses.dataclass
class Member:
    """One trajectory as the session sees it."""

    completed: int
    segments: list[tuple[int, int]]
    prefix_score: float | None
    reward: float | None
    num_bytes: int
    known: bool  # whether pace's client wrote the segments; else verl's min and max stand for them

    @staticmethod
    def of_tag(tag: Mapping, submitted: int) -> Member:
        """`submitted` is the version when the prompt was submitted; it stands for what a tag does
        not say.

        >>> from pace.verl.admission import Member
        >>> Member.of_tag({"min_global_steps": 2, "max_global_steps": 3, "response_len": 9}, 1)
        Member(completed=3, segments=[(2, 9)], prefix_score=None, reward=None, num_bytes=0, \
known=False)
        """
        own = tag.get("pace") or {}
        oldest = _first(tag.get("min_global_steps"), submitted)
        newest = max(oldest, _first(tag.get("max_global_steps"), oldest))
        segments: list[tuple[int, int]] = []
        for version, num_tokens in own.get("segments") or ():
            # An engine that does not name its version counts as the oldest that it may be.
            version = oldest if version < 0 else version
            if segments and version <= segments[-1][0]:
                segments[-1] = (segments[-1][0], segments[-1][1] + num_tokens)
            else:
                segments.append((version, num_tokens))
        known = bool(segments)
        if not known:
            # Without the boundaries the whole response counts as old as its first token.
            segments = [(oldest, max(1, int(_first(tag.get("response_len"), 1))))]
        completed = max(segments[-1][0], _first(own.get("completed"), newest))
        return Member(completed, segments, own.get("prefix_score"), own.get("reward"),
                      int(own.get("num_bytes") or 0), known)

    def at_most(self, version: int) -> Member:
        """The same with no version above `version`."""
        if self.completed <= version:
            return self
        segments: list[tuple[int, int]] = []
        for v, n in self.segments:
            v = min(v, version)
            if segments and segments[-1][0] == v:
                segments[-1] = (v, segments[-1][1] + n)
            else:
                segments.append((v, n))
        return dataclasses.replace(self, completed=min(self.completed, version), segments=segments)


def _first(value, otherwise):
    return otherwise if value is None else value


@dataclasses.dataclass
class Waiting:
    """A finished group that no step has drawn, or that this step has admitted."""

    id: int
    members: list[Member]

    def group(self, version: int) -> _core.Group:
        members = [member.at_most(version) for member in self.members]
        rewards = [member.reward for member in members if member.reward is not None]
        return _core.Group(
            self.id, [(m.completed, m.segments, m.prefix_score) for m in members],
            reward=sum(rewards) / len(rewards) if rewards else 0.0,
            num_bytes=sum(m.num_bytes for m in members))


@dataclasses.dataclass
class Drawn:
    admitted: list[str]
    rejected: list[str]


class Admission:
    def __init__(self, options: Options, batch: int, group_size: int = 1,
                 state: Mapping | None = None):
        """`batch`: groups of one global step. `state` is what an earlier `save` returned; the
        record then continues, too. Without it the record is a new directory: the one that the
        options name or, where that exists, the first free one of NAME-2, NAME-3, ..."""
        self.options = options
        self.batch = batch
        self.settings = options.session_settings(batch, group_size)
        if state is None:
            self.directory = _free_directory(options.record)
            resume = None
        else:
            _check_state(state, batch)
            # A run that was not recorded so far stays so: a trace begins with its run.
            self.directory, resume = state["directory"], state["record"]
        self.session = _core.AdmissionSession(self.settings, record=self.directory, resume=resume)
        self._waiting: dict[str, Waiting] = {}   # in completion order
        self._admitted: dict[str, Waiting] = {}  # by this step, not handed out yet
        self._next_id = 0
        self._step: int | None = None
        self.num_refilled = 0
        self.num_unknown = 0  # trajectories without segments of their own
        self._plan = None
        self._numbers: list[tuple[_core.Group, _core.Decision]] = []
        if state is not None:
            self._restore(state)

    # ---- finished groups ----

    def see(self, finished: Mapping[str, Sequence[Mapping]],
            submitted: Mapping[str, int] | None = None) -> None:
        """Groups that are finished now: tags of the trajectories by uid. New ones join in the order
        of completion, those seen together in the given order; those that are gone are forgotten.
        `submitted`: the version when each prompt was submitted."""
        gone = [uid for uid in self._waiting if uid not in finished]
        for uid in gone:
            del self._waiting[uid]
        for uid, tags in finished.items():
            if uid not in self._waiting and uid not in self._admitted:
                self.add(uid, tags, (submitted or {}).get(uid, 0))

    def add(self, uid: str, tags: Sequence[Mapping], submitted: int = 0) -> None:
        """One group has finished. A group that is known already is left as it is."""
        if uid in self._waiting or uid in self._admitted or not tags:
            return
        members = [Member.of_tag(tag, submitted) for tag in tags]
        self.num_unknown += sum(not member.known for member in members)
        self._waiting[uid] = Waiting(self._next_id, members)
        self._next_id += 1

    def forget(self, uids: Iterable[str]) -> None:
        """Groups that left for reasons of verl's own."""
        for uid in uids:
            self._waiting.pop(uid, None)
            self._admitted.pop(uid, None)

    @property
    def occupancy(self) -> int:
        return len(self._waiting)

    @property
    def num_admitted(self) -> int:
        """Groups admitted by this step and not handed out yet."""
        return len(self._admitted)

    def knows(self, uid: str) -> bool:
        return uid in self._waiting or uid in self._admitted

    # ---- a step ----

    def begin_step(self, version: int) -> None:
        """Fixes budget and cutoff of the step that trains from `version`."""
        if self._step == version:
            return
        # Admitted and not trained on: they wait again, before the others.
        self._waiting = self._admitted | self._waiting
        self._admitted = {}
        self._step = version
        self._numbers = []
        self._plan = self.session.begin_step(version, occupancy=len(self._waiting), served=version)

    def draw(self, count: int) -> Drawn:
        """Verdicts in completion order until `count` groups are admitted or none is left. The
        admitted ones stay reserved until `take`."""
        rejected = []
        while len(self._admitted) < count and self._waiting:
            uid = next(iter(self._waiting))
            waiting = self._waiting.pop(uid)
            group = waiting.group(self._step)
            decision = self.session.draw(group)
            if decision:
                self._admitted[uid] = waiting
                self._numbers.append((group, decision))
            else:
                rejected.append(uid)
        self.num_refilled += len(rejected)
        return Drawn(list(self._admitted)[:count], rejected)

    def take(self, uids: Iterable[str]) -> None:
        """These groups go into training."""
        for uid in uids:
            del self._admitted[uid]

    # ---- numbers ----

    def metrics(self) -> dict[str, float]:
        """Of the step begun last, for verl's log."""
        counts = self.session.counts
        out = {"pace/occupancy": self._plan.occupancy, "pace/offered": counts["offered"],
               "pace/rejected": counts["rejected"], "pace/guarded": counts["guarded"],
               "pace/refilled_total": self.num_refilled,
               "pace/unknown_versions_total": self.num_unknown}
        if counts["offered"]:
            out["pace/realised"] = counts["rejected"] / counts["offered"]
        for name in ("budget", "cutoff"):
            value = getattr(self._plan, name)
            if value is not None:
                out[f"pace/{name}"] = value
        if not self._numbers:
            return out
        columns = {"waiting": [d.waiting for _, d in self._numbers],
                   "generation": [d.generation for _, d in self._numbers],
                   "effective": [d.score for _, d in self._numbers],
                   "lag": [g.lag(self._step) for g, _ in self._numbers]}
        for name, values in columns.items():
            out[f"pace/staleness/{name}/mean"] = sum(values) / len(values)
            out[f"pace/staleness/{name}/max"] = max(values)
        scores = [d.prefix_score for _, d in self._numbers if d.prefix_score is not None]
        out["pace/prefix/scored_fraction"] = len(scores) / len(self._numbers)
        if scores:
            out["pace/prefix/score_mean"] = sum(scores) / len(scores)
        return out

    # ---- state ----

    def save(self) -> dict:
        """The whole state between two steps, in types of JSON."""
        waiting = self._admitted | self._waiting
        return {"format": _FORMAT, "method": self.options.method, "batch": self.batch,
                "session": self.session.save(), "directory": self.directory,
                "record": self.session.flush(),
                "step": self._step, "next_id": self._next_id, "num_refilled": self.num_refilled,
                "num_unknown": self.num_unknown,
                "waiting": [[uid, w.id, [dataclasses.astuple(m) for m in w.members]]
                            for uid, w in waiting.items()]}

    def _restore(self, state: Mapping) -> None:
        self.session.restore(state["session"], "pace.json")
        self._step = state["step"]
        self._next_id = state["next_id"]
        self.num_refilled = state["num_refilled"]
        self.num_unknown = state["num_unknown"]
        for uid, number, members in state["waiting"]:
            self._waiting[uid] = Waiting(number, [
                Member(completed, [tuple(run) for run in segments], *rest)
                for completed, segments, *rest in members])

    def flush(self) -> None:
        """Writes the record of the step begun last."""
        self.session.flush()

    def close(self) -> None:
        """Completes the record."""
        self.session.close()


def _free_directory(wanted: str | None) -> str | None:
    if wanted is None:
        return None
    os.makedirs(os.path.dirname(os.path.abspath(wanted)), exist_ok=True)
    directory, number = wanted, 1
    while os.path.exists(directory):
        number += 1
        directory = f"{wanted}-{number}"
    return directory


def _check_state(state: Mapping, batch: int) -> None:
    if state.get("format") != _FORMAT:
        raise _core.DataLoss(f"pace.json: format = {state.get('format')!r}: must be {_FORMAT}")
    if state.get("batch") != batch:
        raise _core.InvalidArgument(
            f"pace.json: batch = {state.get('batch')}: the run now trains {batch} groups per step; "
            "resume with data.train_batch_size as it was")
