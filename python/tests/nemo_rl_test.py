"""pace.nemo_rl against a stand-in for NeMo RL's buffer.

NeMo RL has no package that these tests could install. The stand-in has the lists and the rules of
nemo_rl/algorithms/async_utils/replay_buffer.py (`TQReplayBuffer`) that a sampler may rely on, as
read on 2026-08-22; the contract is `PromptGroupSampler` of staleness_sampler.py beside it.
"""

import asyncio
import random
import unittest

from pace.nemo_rl import PaceSampler


class Meta:
    def __init__(self, sample_ids, lengths, tags):
        self.sample_ids, self.sequence_lengths, self.tags = sample_ids, lengths, tags

    def concat(self, *others):
        return Meta(*(sum((getattr(m, name) for m in others), list(getattr(self, name)))
                      for name in ("sample_ids", "sequence_lengths", "tags")))


class Buffer:
    """Parallel lists; a slot is reserved with its start weight and becomes ready by `commit`."""

    def __init__(self):
        self.meta_list, self.start_weight_list, self.end_weight_list = [], [], []
        self.ready_list, self._group_ids = [], []
        self.cleared = []

    def reserve(self, group, weight):
        self.meta_list.append(None)
        self.start_weight_list.append(weight)
        self.end_weight_list.append(-1)
        self.ready_list.append(False)
        self._group_ids.append(group)

    def commit(self, group, end, lengths=(5, 7)):
        index = self._group_ids.index(group)
        self.meta_list[index] = Meta([f"{group}_{i}" for i in range(len(lengths))], list(lengths),
                                     [{"weight_version": end}] * len(lengths))
        self.end_weight_list[index] = end
        self.ready_list[index] = True

    async def remove(self, idxs, remove_in_dp):
        for index in sorted(idxs, reverse=True):
            if remove_in_dp:
                self.cleared += self.meta_list[index].sample_ids
            for rows in (self.meta_list, self.start_weight_list, self.end_weight_list,
                         self.ready_list, self._group_ids):
                del rows[index]
        return len(idxs)


def select(sampler, step, least, most):
    return asyncio.run(sampler.select(current_train_weight=step, min_prompt_groups=least,
                                      max_prompt_groups=most))


class NemoRlTest(unittest.TestCase):
    def test_it_has_what_the_contract_names(self):
        sampler = PaceSampler(Buffer(), groups_per_step=2)
        for name in ("admit", "select", "evict", "should_abort_inflight", "is_on_policy",
                     "required_buffer_capacity", "set_dispatch_index"):
            self.assertTrue(hasattr(sampler, name), name)
        self.assertFalse(sampler.is_on_policy)
        self.assertEqual(asyncio.run(sampler.evict(current_train_weight=3)), 0)

    def test_unready_slots_are_left_alone(self):
        buffer = Buffer()
        sampler = PaceSampler(buffer, groups_per_step=2)
        self.assertEqual(select(sampler, 0, 1, 2), (None, 0))
        for group in "abc":
            buffer.reserve(group, 0)
        buffer.commit("c", 0)
        self.assertEqual(select(sampler, 0, 2, 2), (None, 0))
        buffer.commit("a", 0)
        meta, count = select(sampler, 0, 2, 2)
        self.assertEqual((count, meta.sample_ids), (2, ["c_0", "c_1", "a_0", "a_1"]))
        self.assertEqual(buffer._group_ids, ["b"])
        self.assertEqual(buffer.cleared, [])

    def test_groups_are_trained_once_and_rejections_let_others_start(self):
        rng, buffer = random.Random(4), Buffer()
        sampler = PaceSampler(buffer, groups_per_step=4, max_staleness_versions=3, method="raw",
                              settings={"admission.min_observations": 8, "admission.beta": 0})
        version, trained, started, ended = 0, [], 0, []

        async def may_start():
            try:
                await asyncio.wait_for(
                    sampler.admit(trainer_version_fn=lambda: version), timeout=0.02)
                return True
            except asyncio.TimeoutError:
                return False

        while version < 40:
            while asyncio.run(may_start()):
                for _ in range(4):
                    buffer.reserve(f"g{started:04d}", version)
                    started += 1
            unready = [g for g, ready in zip(buffer._group_ids, buffer.ready_list) if not ready]
            for group in rng.sample(unready, min(len(unready), rng.randint(1, 9))):
                buffer.commit(group, version, (rng.randint(1, 9), rng.randint(1, 9)))
            meta, count = select(sampler, version, 4, 4)
            if count:
                self.assertEqual(count, 4)
                trained += {sample.split("_")[0] for sample in meta.sample_ids}
                version += 1
                ended.append(version)
        rejected = {sample.split("_")[0] for sample in buffer.cleared}
        self.assertEqual(len(trained), len(set(trained)))
        self.assertFalse(rejected & set(trained))
        self.assertGreater(len(rejected), 0)
        self.assertEqual(sorted([*trained, *rejected, *buffer._group_ids]),
                         [f"g{i:04d}" for i in range(started)])
        self.assertEqual(sampler.metrics()["pace/refilled_total"], len(rejected))
        self.assertLessEqual(len(buffer._group_ids), sampler.required_buffer_capacity(4))

    def test_on_policy(self):
        buffer = Buffer()
        sampler = PaceSampler(buffer, groups_per_step=2, max_staleness_versions=0)
        self.assertTrue(sampler.is_on_policy)
        asyncio.run(sampler.admit(trainer_version_fn=lambda: 0))
        with self.assertRaises(asyncio.TimeoutError):
            asyncio.run(asyncio.wait_for(sampler.admit(trainer_version_fn=lambda: 0), 0.02))
        sampler.set_dispatch_index(7)
        asyncio.run(sampler.admit(trainer_version_fn=lambda: 7))


if __name__ == "__main__":
    unittest.main()
