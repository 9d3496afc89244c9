"""verl's own buffer, PACE and just-in-time supply on the same workload: waiting staleness, step time,
and what `python -m pace.verl sim` says of the same set-up.

An update takes a fixed time (timed_training.py), as on an accelerator of its own, and training is the
slower part, as in the clusters where responses wait: every method finds more finished groups than it
trains on. The processes of training and generation have cores of their own.

A step time is a mean, because PACE rejects in some steps and not in others: the steps that reject and
refill take longer, and a median would leave them out.
"""

import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import unittest

import verl_process
from verl_process import BATCH, GROUP

NUM_STEPS = int(os.environ.get("PACE_VERL_STEPS", "34"))
# The pool has filled and the windows are warm. PACE then rejects in every fourth step.
FIRST = 18
WARMUP, MAX_TOKENS = 8, 64
UPDATE_SECONDS = float(os.environ.get("PACE_UPDATE_SECONDS", "6"))
SHARE = 0.3
# Of the stock buffer's waiting staleness and step time; of what the simulator says.
MOST_WAITING, MOST_SECONDS, TOLERANCE = 0.5, 1.05, 0.15


def setUpModule():
    folder = pathlib.Path(unittest.enterModuleContext(tempfile.TemporaryDirectory()))
    verl_process.unpack_package(folder / "package")
    verl_process.make_assets(folder / "assets")
    globals()["FOLDER"] = folder


def run(test, name, *overrides):
    begun = verl_process.VerlRun(
        FOLDER / name, FOLDER / "package", FOLDER / "assets",
        f"trainer.total_training_steps={NUM_STEPS}", f"data.max_response_length={MAX_TOKENS}",
        f"trainer.v1.separate_async.num_warmup_batches={WARMUP}",
        "actor_rollout_ref.model.external_lib=timed_training", *overrides, slow=SHARE, apart=True,
        env={"PACE_UPDATE_SECONDS": str(UPDATE_SECONDS),
             "PYTHONPATH": f"{FOLDER / 'package'}:{pathlib.Path(__file__).parent}"})
    test.addCleanup(begun.end)
    test.assertEqual(begun.wait(), 0, begun.tail())
    rows = begun.rows()[FIRST:]
    # A response waits from its last version to the version that trains on it.
    return {"waiting": statistics.fmean(row["training/off_policy/trajectory_staleness/mean"]
                                        for row in rows),
            "seconds": statistics.fmean(row["timing_s/step"] for row in rows),
            "median_seconds": statistics.median(row["timing_s/step"] for row in rows),
            "draw_seconds": statistics.fmean(row["timing_s/gen"] for row in rows),
            "rejected": sum(row.get("training/off_policy/evicted_samples", 0) for row in rows),
            "tokens": statistics.fmean(row["response_length/mean"] for row in rows)}


def simulate(methods, measured):
    """Waiting staleness by method. Training time and lengths are those that were measured."""
    done = subprocess.run(
        [verl_process.PYTHON, "-m", "pace.verl", "sim", "trainer.v1.trainer_mode=separate_async",
         f"data.train_batch_size={BATCH}", f"actor_rollout_ref.rollout.n={GROUP}",
         "trainer.v1.separate_async.parameter_sync_step=1",
         f"trainer.v1.separate_async.num_warmup_batches={WARMUP}",
         f"trainer.total_training_steps={NUM_STEPS}", f"data.max_response_length={MAX_TOKENS}",
         "actor_rollout_ref.rollout.nnodes=1", "actor_rollout_ref.rollout.n_gpus_per_node=2",
         "actor_rollout_ref.rollout.tensor_model_parallel_size=1", "trainer.n_gpus_per_node=2",
         "--methods", ",".join(methods),
         "--set", "cluster.decode_costs=constant",
         # A token of a response takes milliseconds while its engine runs.
         "--set", f"cluster.seconds_per_token={0.004 / SHARE}",
         "--set", f"cluster.train_seconds={measured['seconds']}",
         "--set", "cluster.sync_overhead_s=0",
         "--set", "workload.length=exponential",
         "--set", f"workload.mean_tokens={measured['tokens'] * 1.3}"],
        capture_output=True, text=True, cwd=FOLDER, check=True,
        env={"PYTHONPATH": str(FOLDER / "package")})
    head, *lines = done.stdout.splitlines()
    column = head.split().index("waiting") - len("seconds a step".split()) + 1
    return {line.split()[0]: float(line.split()[column]) for line in lines}


class VerlCompareTest(unittest.TestCase):
    def test_waiting_falls_and_the_simulator_knows(self):
        results = {
            "verl": run(self, "verl", "trainer.v1.sampler.custom_sampler.path=null",
                        "trainer.v1.sampler.sampler_kwargs={}",
                        "actor_rollout_ref.rollout.agent.agent_loop_manager_class=null",
                        "trainer.checkpoint_callback_class=null"),
            "pace": run(self, "pace"),
            "jit": run(self, "jit", "trainer.v1.sampler.sampler_kwargs.method=jit"),
        }
        simulated = simulate(["observe", "pace", "jit"], results["verl"])
        ratios = {name: result["seconds"] / results["verl"]["seconds"]
                  for name, result in results.items()}
        print("\n" + json.dumps({"measured": results, "simulated": simulated,
                                 "step time": ratios}, indent=1))
        self.assertLessEqual(results["pace"]["waiting"],
                             MOST_WAITING * results["verl"]["waiting"])
        self.assertLessEqual(ratios["pace"], MOST_SECONDS)
        self.assertEqual(results["jit"]["rejected"], 0)
        self.assertLessEqual(results["jit"]["waiting"], results["pace"]["waiting"])
        for name, method in (("verl", "observe"), ("pace", "pace"), ("jit", "jit")):
            self.assertAlmostEqual(results[name]["waiting"], simulated[method],
                                   delta=TOLERANCE * simulated[method])


if __name__ == "__main__":
    unittest.main()
