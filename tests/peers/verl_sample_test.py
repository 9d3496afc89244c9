"""A draw from 10,000 finished groups, beside verl's own buffer, in a real TransferQueue."""

import json
import pathlib
import statistics
import subprocess
import tempfile
import unittest

import verl_process

NUM_GROUPS, GROUP, BATCH, ROUNDS = 10_000, 4, 64, 5
# Of the time that verl's own buffer takes.
MOST = 0.3

_SCRIPT = f"""
import json, time, types, uuid
import ray
ray.init(num_cpus=16, include_dashboard=False, log_to_driver=False, _temp_dir=TEMPORARY)
import transfer_queue as tq
tq.init()
from pace.verl.admission import ANNOUNCED
from pace.verl.sampler import PaceSampler
from verl.trainer.ppo.v1.replay_buffer import ReplayBufferAsync


class Trainer:
    # What the sampler asks of verl's trainer.
    agent_loop_manager = types.SimpleNamespace(announces=True)

    def refill(self, count):
        return count


def produce(count, announce):
    keys, tags, news = [], [], {{}}
    for number in range(count):
        uid = uuid.uuid4().hex
        keys.append(uid)
        tags.append({{"is_prompt": True, "status": "finished", "global_steps": 1}})
        members = {{}}
        for member in range({GROUP}):
            key = f"{{uid}}_{{member}}_0"
            members[key] = {{"status": "success", "response_len": 100 + number % 7, "seq_len": 110,
                            "global_steps": 1, "min_global_steps": 0, "max_global_steps": 0,
                            "pace": {{"segments": [[0, 100]], "completed": 0}}}}
        keys += members
        tags += members.values()
        news[uid] = {{"status": "finished", "global_steps": 1, "members": members}}
    for low in range(0, len(keys), 2000):
        tq.kv_batch_put(keys=keys[low:low + 2000], partition_id="train", tags=tags[low:low + 2000])
    if announce:
        tq.kv_batch_put(keys=list(news), partition_id=ANNOUNCED, tags=list(news.values()))


def make(kind):
    return kind(trainer_mode="separate_async", max_off_policy_threshold=None,
                trainer_config={{"parameter_sync_step": 1, "num_warmup_batches": 8}},
                max_off_policy_strategy="drop", sampler_kwargs={{"method": "observe"}}
                if kind is PaceSampler else {{}}, refill_fn=Trainer().refill)


produce({NUM_GROUPS}, announce=False)
samplers = {{"verl": make(ReplayBufferAsync), "pace": make(PaceSampler)}}
seconds, seen = {{"verl": [], "pace": []}}, set()
for step in range(1, {ROUNDS} + 2):
    for name, sampler in samplers.items():
        begin = time.perf_counter()
        batch, _ = sampler.sample(step, "train", {BATCH})
        seconds[name].append(time.perf_counter() - begin)
        assert len(batch.keys) == {BATCH * GROUP}, len(batch.keys)
        assert not seen & set(batch.keys)
        seen |= set(batch.keys)
        listed = tq.kv_list("train")["train"]
        assert [listed[key] for key in batch.keys] == list(batch.tags)
        # What one of them took, the other must not know any more.
        samplers["pace"].admission is None or samplers["pace"].admission.forget(
            {{key.split("_")[0] for key in batch.keys}})
        tq.kv_clear(keys=batch.keys, partition_id="train")
        produce({BATCH}, announce=True)
print("SECONDS", json.dumps(seconds))
ray.shutdown()
"""


class VerlSampleTest(unittest.TestCase):
    def test_a_draw_costs_what_is_new(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="pv")))
        verl_process.unpack_package(folder / "package")
        done = subprocess.run(
            [verl_process.PYTHON, "-c", f"TEMPORARY = {str(folder)!r}\n{_SCRIPT}"],
            env={"PYTHONPATH": str(folder / "package"), "RAY_USAGE_STATS_ENABLED": "0"},
            capture_output=True, text=True, timeout=verl_process.PATIENCE)
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        line = next(line for line in done.stdout.splitlines() if line.startswith("SECONDS"))
        seconds = json.loads(line.removeprefix("SECONDS "))
        # The first draw of each run lists everything.
        verl, pace = (statistics.median(seconds[name][1:]) for name in ("verl", "pace"))
        print(f"\na draw of {BATCH} from {NUM_GROUPS} groups: verl {verl * 1000:.0f} ms, "
              f"pace {pace * 1000:.0f} ms, ratio {pace / verl:.3f}; the first draw "
              f"{seconds['pace'][0] * 1000:.0f} ms")
        self.assertLess(pace, MOST * verl)


if __name__ == "__main__":
    unittest.main()
