"""Weights as a folder of safetensors: checkpoint engine `pace_files`.

    actor_rollout_ref.rollout.checkpoint_engine.backend=pace_files
    actor_rollout_ref.rollout.checkpoint_engine.custom_backend_module=pace.verl.weight_files

Rank 0 of the actor writes each version into a new folder under `PACE_WEIGHTS` (default: shared
memory of the machine) and renames it when it is complete; engines read it. The folder must be
visible to both: shared memory on one machine, a shared disk on several. Two versions are kept, so
that an engine that is replaced during a sync finds the one before.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import time
import uuid

from safetensors.torch import save_file
from verl.checkpoint_engine.base import CheckpointEngine, CheckpointEngineRegistry

_NUM_KEPT = 2
_DEADLINE_SECONDS = 300.0


@CheckpointEngineRegistry.register("pace_files")
class WeightFiles(CheckpointEngine):
    wire_format = "pace_folder"

    def __init__(self, bucket_size, is_master=False, root=None):
        self.is_master = is_master
        self.root = root or os.environ.get("PACE_WEIGHTS", "/dev/shm/pace_weights")
        self.folder: str | None = None
        self._written: list[str] = []

    def prepare(self):
        if not self.is_master:
            return {}
        return {"folder": os.path.join(self.root, uuid.uuid4().hex)}

    @classmethod
    def build_topology(cls, actor_wg_world_size, rollout_world_size, metadata):
        folder = next(entry["folder"] for entry in metadata if entry)
        return ({"folder": [folder] * actor_wg_world_size},
                {"folder": [folder] * rollout_world_size})

    def init_process_group(self, folder):
        self.folder = folder

    def finalize(self):
        self.folder = None

    async def send_weights(self, weights, global_steps=None):
        begin, tensors = time.perf_counter(), {}
        for name, tensor in weights:  # on every rank: gathering a parameter is a collective
            if self.is_master:
                # A copy: views of one storage cannot be saved, and training goes on.
                tensors[name] = tensor.detach().to("cpu").clone().contiguous()
        if not self.is_master:
            return {}
        os.makedirs(self.folder + ".tmp")
        save_file(tensors, os.path.join(self.folder + ".tmp", "model.safetensors"))
        os.rename(self.folder + ".tmp", self.folder)
        self._written.append(self.folder)
        while len(self._written) > _NUM_KEPT:
            shutil.rmtree(self._written.pop(0), ignore_errors=True)
        return {"pace_files/bytes": sum(tensor.nbytes for tensor in tensors.values()),
                "pace_files/seconds": time.perf_counter() - begin}

    async def receive_weights(self, global_steps=None):
        deadline = time.monotonic() + _DEADLINE_SECONDS
        while not os.path.isdir(self.folder):
            if time.monotonic() > deadline:
                raise RuntimeError(f"{self.folder}: no weights of step {global_steps} after "
                                   f"{_DEADLINE_SECONDS:.0f} s (PACE_WEIGHTS must be visible to "
                                   "trainer and engines)")
            await asyncio.sleep(0.01)
        yield "folder", self.folder
