"""PaceSampler: verl's replay buffer with admission by pace.

    trainer.v1.sampler.custom_sampler.path=pkg://pace.verl.sampler
    trainer.v1.sampler.custom_sampler.name=PaceSampler

It replaces the polling loop of verl's `ReplayBufferAsync` (trainer/ppo/v1/replay_buffer.py). A step
draws finished groups in completion order until its batch is full. Rejected groups are evicted and
refilled one for one, as are failed groups, groups that verl's own rules evict and finished groups
without a trajectory. It sleeps only when no group is left to draw. Validation is verl's.

verl's buffer lists every key of TransferQueue at each look. With pace's agent loops that happens
once: they announce each finished group in a partition of its own, `ANNOUNCED`, which the sampler
reads and clears. A draw then costs as much as the groups that are new and those that it hands out,
however many wait. Where verl's own rules evict (`max_off_policy_threshold`,
`filter_groups_metric`), every look is a listing.

The state is restored at the first draw: the constructor runs before verl chooses a checkpoint.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections import defaultdict

import transfer_queue as tq
from omegaconf import OmegaConf
from transfer_queue import KVBatchMeta
from verl.trainer.ppo.v1.replay_buffer import ReplayBufferAsync, _accumulate_eviction_metrics
from verl.utils.skip import SkipManager

from .admission import ANNOUNCED, Admission, uid_of
from .options import Options
from .supply import PromptSupply

_logger = logging.getLogger(__name__)


def _plain(config) -> dict:
    return OmegaConf.to_container(config, resolve=True) if OmegaConf.is_config(config) else config


class PaceSampler(ReplayBufferAsync):
    def __init__(self, *args, sampler_kwargs=None, refill_fn=None, **kwargs):
        self.options = Options.read(_plain(sampler_kwargs) or {})
        if self.options.filter_groups_metric is not None:
            kwargs.setdefault("filter_groups_metric", self.options.filter_groups_metric)
        super().__init__(*args, sampler_kwargs=sampler_kwargs, refill_fn=refill_fn, **kwargs)
        self.poll_interval = self.options.poll_interval
        self.admission: Admission | None = None
        self.supply: PromptSupply | None = None
        # partition -> uid -> keys of its trajectories
        self._keys_of: dict[str, dict[str, list[str]]] = defaultdict(dict)
        # Groups of a listing that may still be announced.
        self._listed: set[str] | None = None
        self._step_begin: float | None = None
        self._waited = 0.0
        self._counted_step: int | None = None

    # ---- verl's interface ----

    @SkipManager.annotate_tq(role="rollout_tq", phase="sample")
    def sample(self, global_steps: int, partition_id: str, batch_size: int):
        if partition_id == "val":
            return super().sample(global_steps, partition_id, batch_size)
        uids, metrics = self._gather(global_steps, partition_id, batch_size)
        self.admission.take(uids)
        if self.supply is not None:
            self.supply.train(len(uids))
        batch = self._hand_out(partition_id, uids)
        if self.options.metrics:
            metrics.update(self._metrics())
        if global_steps >= getattr(self._trainer, "total_training_steps", float("inf")):
            # verl tells a sampler nothing about the end of a run.
            self.admission.flush()
        return batch, metrics

    def wait_for_sampleable(self, global_steps: int, partition_id: str, target_count: int):
        if partition_id == "val":
            return super().wait_for_sampleable(global_steps, partition_id, target_count)
        uids, metrics = self._gather(global_steps, partition_id, target_count)
        return set(uids), metrics

    def _metrics(self) -> dict:
        out = {**self.admission.metrics(), "pace/wait_seconds": self._waited}
        if self.supply is not None:
            out.update({"pace/supply/limit": self.supply.limit,
                        "pace/supply/held": self.supply.num_held,
                        "pace/supply/running": self.supply.num_running})
        return out

    # ---- the loop ----

    def _gather(self, global_steps: int, partition_id: str, count: int):
        """Draws until `count` groups are admitted. Returns them and verl's eviction metrics."""
        self._begin(count, global_steps)
        metrics: dict = {}
        if self._counted_step != global_steps:
            self._counted_step = global_steps
            self._report_step()
        last_debug = time.time()
        while True:
            evicted = self._look(global_steps, partition_id, metrics)
            self.admission.begin_step(max(0, global_steps - 1))
            # Under verl's strategy `wait`, nothing is drawn while an old prompt is unfinished.
            open_ = self._has_enough_samples(global_steps, partition_id, 0, set())
            drawn = self.admission.draw(count if open_ else 0)
            evicted += self._evict_rejected(global_steps, partition_id, drawn.rejected, metrics)
            if evicted and self.refill_fn is not None:
                self.refill_fn(evicted)
            self._release()
            if open_ and len(drawn.admitted) >= count:
                return drawn.admitted, metrics
            if not evicted:
                self._check_loops()
                begin = time.perf_counter()
                last_debug = self._wait_for_next_poll(partition_id, last_debug)
                self._waited += time.perf_counter() - begin

    def _check_loops(self) -> None:
        """A worker that is lost must not let the step wait for ever."""
        loops = getattr(self._trainer, "agent_loop_manager", None)
        if hasattr(loops, "check"):
            loops.check()

    def _look(self, global_steps: int, partition_id: str, metrics: dict) -> int:
        """Reads TransferQueue, evicts what verl's own rules evict, and shows the rest to the
        admission. Returns how many groups were evicted."""
        if self._listed is not None and self._is_announced:
            return self._look_at_announcements(global_steps, partition_id, metrics)
        self._sync_metadata_from_transfer_queue()
        self._listed = self.finished_keys[partition_id] | self.failure_keys[partition_id]
        stale, dapo, failed, counts = super()._terminal_eviction_reasons(global_steps, partition_id)
        keys_of = self._keys_of[partition_id]
        finished = self.finished_keys[partition_id]
        failed = failed | {uid for uid in finished if uid not in keys_of}
        known = {uid for uid in stale | dapo if self.admission.knows(uid)}
        evicted, num_stale, _, found = self._evict_terminal_groups(
            global_steps, partition_id, (stale, dapo, failed, counts))
        if evicted:
            _accumulate_eviction_metrics(metrics, found, num_stale)
        self.admission.forget(evicted)
        if self.supply is not None:
            for uid in evicted:
                if uid in known:
                    self.supply.reject(1)
                else:
                    self.supply.fail()
        self._show(partition_id)
        return len(evicted)

    @property
    def _is_announced(self) -> bool:
        loops = getattr(self._trainer, "agent_loop_manager", None)
        return (getattr(loops, "announces", False) and self.max_off_policy_threshold is None
                and self.filter_groups_metric is None)

    def _look_at_announcements(self, global_steps: int, partition_id: str, metrics: dict) -> int:
        listed = (tq.kv_list(partition_id=ANNOUNCED) or {}).get(ANNOUNCED) or {}
        # TransferQueue makes a key before it sets its tag.
        news = {uid: tag for uid, tag in listed.items() if "members" in tag}
        if not news:
            return 0
        tq.kv_clear(partition_id=ANNOUNCED, keys=list(news))
        failed = set()
        for uid, tag in news.items():
            if uid in self._listed:
                self._listed.discard(uid)
                continue
            members = tag["members"]
            self._keys_of[partition_id][uid] = list(members)
            self.partitions[partition_id].update(members)
            self.prompt_global_steps[partition_id][uid] = tag["global_steps"]
            if tag["status"] == "finished":
                self.finished_keys[partition_id].add(uid)
                self.admission.add(uid, list(members.values()), max(0, tag["global_steps"] - 1))
                if self.supply is not None:
                    self.supply.finish(sum(m["response_len"] for m in members.values()))
            else:
                failed.add(uid)
        if failed:
            _, _, _, found = self._evict_terminal_groups(
                global_steps, partition_id, (set(), set(), failed, {}))
            _accumulate_eviction_metrics(metrics, found, 0)
            for _ in failed if self.supply is not None else ():
                self.supply.fail()
        return len(failed)

    def _show(self, partition_id: str) -> None:
        tags, keys_of = self.partitions[partition_id], self._keys_of[partition_id]
        submitted = self.prompt_global_steps[partition_id]
        # Groups of one look: by submission, then by key, so that equal looks give equal orders.
        uids = sorted(self.finished_keys[partition_id],
                      key=lambda uid: (submitted.get(uid, 0), uid))
        new = [uid for uid in uids if not self.admission.knows(uid)]
        self.admission.see({uid: [tags[key] for key in keys_of[uid]] for uid in uids},
                           {uid: max(0, submitted.get(uid, 1) - 1) for uid in uids})
        if self.supply is not None:
            for uid in new:
                self.supply.finish(sum(int(tags[key].get("response_len") or 0)
                                       for key in keys_of[uid]))

    def _evict_rejected(self, global_steps: int, partition_id: str, uids: list[str],
                        metrics: dict) -> int:
        if not uids:
            return 0
        _, num_stale, _, found = self._evict_terminal_groups(
            global_steps, partition_id, (set(uids), set(), set(), {}))
        _accumulate_eviction_metrics(metrics, found, num_stale)
        if self.supply is not None:
            self.supply.reject(len(uids))
        return len(uids)

    def _hand_out(self, partition_id: str, uids: list[str]) -> KVBatchMeta:
        keys = [key for uid in uids for key in self._keys_of[partition_id][uid]]
        tags = tq.get_client().kv_retrieve_meta(keys=keys, partition_id=partition_id,
                                                create=False).get_all_custom_meta()
        tq.kv_clear(partition_id=partition_id, keys=list(uids))
        self._forget(partition_id, uids)
        return KVBatchMeta(partition_id=partition_id, keys=keys, tags=tags)

    # ---- verl's metadata, indexed by prompt ----

    def _sync_metadata_from_transfer_queue(self):
        super()._sync_metadata_from_transfer_queue()
        self._keys_of.clear()
        for partition_id, tags in self.partitions.items():
            keys_of = self._keys_of[partition_id]
            for key in tags:
                keys_of.setdefault(uid_of(key), []).append(key)

    def _clear_groups(self, partition_id: str, uids: set[str]) -> None:
        if not uids:
            return
        keys_of = self._keys_of[partition_id]
        tq.kv_clear(partition_id=partition_id,
                    keys=[*uids, *(key for uid in uids for key in keys_of.get(uid, ()))])
        self._forget(partition_id, uids)

    def _forget(self, partition_id: str, uids) -> None:
        """Groups that TransferQueue holds no more, or only for training."""
        for uid in uids:
            for key in self._keys_of[partition_id].pop(uid, ()):
                self.partitions[partition_id].pop(key, None)
            for keys in (self.pending_keys, self.running_keys, self.finished_keys,
                         self.failure_keys):
                keys[partition_id].discard(uid)
            self.prompt_global_steps[partition_id].pop(uid, None)
            self._dapo_classification_cache[partition_id].pop(uid, None)

    # ---- just-in-time supply ----

    def _report_step(self) -> None:
        now = time.perf_counter()
        if self.supply is not None and self._step_begin is not None:
            self.supply.trainer_ready(now - self._step_begin, self._waited)
        self._step_begin, self._waited = now, 0.0

    def _release(self) -> None:
        if self.supply is None:
            return
        loops = self._trainer.agent_loop_manager
        self.supply.offer(loops.num_submitted())
        count = self.supply.take()
        if count:
            loops.start(count)

    # ---- beginning and state ----

    @property
    def _trainer(self):
        return getattr(self.refill_fn, "__self__", None)

    @property
    def _configured_batch(self) -> int | None:
        config = getattr(self._trainer, "config", None)
        return None if config is None else int(config.data.train_batch_size)

    def _begin(self, count: int, global_steps: int) -> None:
        """Makes the admission at the first draw, from a checkpoint if the run was resumed."""
        if self.admission is not None:
            return
        steps = (self.trainer_config or {}).get("parameter_sync_step", 1) or 1
        batch = self._configured_batch or count * int(steps)
        config = getattr(self._trainer, "config", None)
        group_size = 1 if config is None else int(config.actor_rollout_ref.rollout.n)
        state = self._read_state(global_steps)
        self.admission = Admission(self.options, batch, group_size,
                                   state=None if state is None else state["admission"])
        if self.options.just_in_time:
            warmup = float((self.trainer_config or {}).get("num_warmup_batches", 1))
            self.supply = PromptSupply(
                self.options.session_settings(batch, group_size, threshold=max(1.0, warmup)))
            if state is not None and state.get("supply") is not None:
                self.supply.restore(state["supply"])
        if self.admission.directory is not None:
            _logger.info("pace records this run in %s", self.admission.directory)

    def _read_state(self, global_steps: int) -> dict | None:
        step = global_steps - 1
        path = self.options.state_path(step) if step > 0 else None
        if path is None:
            return None
        if not os.path.exists(path):
            _logger.warning("%s: not there: the windows of pace begin empty", path)
            return None
        with open(path, encoding="utf-8") as file:
            return json.load(file)

    def state(self) -> dict | None:
        """What `PaceCheckpoint` writes; None before the first draw."""
        if self.admission is None:
            return None
        return {"admission": self.admission.save(),
                "supply": None if self.supply is None else self.supply.save()}

