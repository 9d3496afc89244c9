"""Replicas of `pace serve` for verl: `actor_rollout_ref.rollout.name=pace`.

`PaceReplica` starts one Ray actor per replica, `PaceEngine`, which supervises one server process.
`PaceWeights` runs in verl's CheckpointEngineWorker beside each engine and hands it the folders that
`weight_files` announces. The program is `PACE_PROGRAM`, or `pace` on the path;
`PACE_SERVE_SETTINGS` holds settings for it, separated by spaces.
"""

from __future__ import annotations

import os

import ray
from verl.workers.rollout.base import BaseRollout
from verl.workers.rollout.replica import RolloutReplica, TokenOutput

from .engine_process import EngineProcess

_PARAMS = ("temperature", "top_p", "top_k", "min_p", "stop", "stop_token_ids", "ignore_eos", "seed",
           "prompt_logprobs")
_STOP_REASONS = {"abort": "aborted", "stop": "completed", "length": "completed"}


def engine_name(replica_rank: int) -> str:
    return f"pace_engine_{replica_rank}"


class PaceEngine:
    """What verl calls on a server actor, by name."""

    def __init__(self, replica_rank: int, model: str, prompt_length: int, response_length: int):
        command = [os.environ.get("PACE_PROGRAM", "pace"), "serve", model,
                   *os.environ.get("PACE_SERVE_SETTINGS", "").split()]
        self._engine = EngineProcess(
            command, label=f"replica {replica_rank}",
            health_seconds=float(os.environ.get("PACE_HEALTH_SECONDS", "5")),
            log=lambda line: print(line, flush=True))
        self._prompt_length = prompt_length
        self._response_length = response_length

    async def start(self) -> str:
        return await self._engine.start()

    async def generate(self, request_id, prompt_ids, sampling_params, **_) -> TokenOutput:
        limit = sampling_params.get("max_tokens", sampling_params.get("max_new_tokens"))
        if limit is None:
            limit = min(self._response_length,
                        self._prompt_length + self._response_length - len(prompt_ids))
        params = {key: sampling_params[key] for key in _PARAMS
                  if sampling_params.get(key) is not None}
        params.update(max_tokens=max(1, int(limit)), logprobs=0)
        answer = await self._engine.generate(str(request_id), [int(t) for t in prompt_ids], params)
        extra = {"global_steps": answer.step}
        if answer.prompt_logprobs is not None:
            extra["prompt_logprobs"] = answer.prompt_logprobs
        return TokenOutput(token_ids=answer.token_ids, log_probs=answer.log_probs, num_preempted=0,
                           stop_reason=_STOP_REASONS.get(answer.finish_reason, answer.finish_reason),
                           extra_fields=extra)

    async def load(self, folder: str, step: int) -> None:
        await self._engine.load(folder, step)

    async def abort_all_requests(self, reject_request: bool = False) -> None:
        await self._engine.pause()

    async def resume_generation(self) -> None:
        await self._engine.resume()

    async def status(self) -> dict:
        return {"pid": self._engine.pid, "url": self._engine.url, "step": self._engine.step,
                "num_replaced": self._engine.num_replaced}

    async def release_kv_cache(self) -> None:
        """The cache is host memory of the server; an aborted request holds none."""

    resume_kv_cache = clear_kv_cache = sleep = wake_up = release_kv_cache
    start_profile = stop_profile = release_kv_cache


class PaceReplica(RolloutReplica):
    async def launch_servers(self):
        actor = ray.remote(PaceEngine).options(
            name=engine_name(self.replica_rank), max_concurrency=self.max_concurrency, num_cpus=0)
        self._server_handle = actor.remote(self.replica_rank, self.model_config.path,
                                           self.config.prompt_length, self.config.response_length)
        self._server_address = await self._server_handle.start.remote()
        self.servers = [self._server_handle]


class PaceWeights(BaseRollout):
    def __init__(self, config, model_config, device_mesh, replica_rank=0, **_):
        super().__init__(config, model_config, device_mesh)
        self.replica_rank = replica_rank
        self.is_leader_rank = True

    async def update_weights(self, weights, global_steps=None, **_):
        async for _, folder in weights:
            engine = ray.get_actor(engine_name(self.replica_rank))
            await engine.load.remote(folder, global_steps)

    async def resume(self, tags):
        """Weights stay where they are."""

    async def release(self):
        """Weights stay where they are."""

    def generate_sequences(self, prompts):
        raise NotImplementedError("verl's agent loops call the server's actor")
