"""What verl loads in every process: VERL_USE_EXTERNAL_MODULES=pace.verl.plugin.

Registers the rollout `pace` (replicas of `pace serve`). With VERL_PLATFORM=pace_cpu also the CPU
platform. Runs with vLLM or SGLang on GPUs need none of this: sampler, agent loops and checkpoint
callback are loaded by their own settings.
"""

from __future__ import annotations

import os

from verl.workers.rollout import base, replica

if os.environ.get("VERL_PLATFORM") == "pace_cpu":
    from . import cpu_platform

    cpu_platform.install()


def _load_replica():
    from .replica import PaceReplica

    return PaceReplica


replica.RolloutReplicaRegistry.register("pace", _load_replica)
base._ROLLOUT_REGISTRY[("pace", "async")] = "pace.verl.replica.PaceWeights"
