"""The agent loops of verl with pace's client.

    +actor_rollout_ref.rollout.agent.agent_loop_manager_class=pace.verl.agent_loop.PaceAgentLoops

`PaceClient` keeps what verl's `FullyAsyncLLMServerClient` (workers/rollout/llm_server.py) forgets:
which version sampled how many tokens, and, where admission uses it, how far the policy moved on an
interrupted prefix. It also resubmits at once: servers hold requests while weights arrive.
`PaceAgentLoopWorker` writes both as a tag of each trajectory before verl marks the group finished,
so the sampler needs no tensors. `PaceAgentLoops` holds prompts back under just-in-time supply.
"""

from __future__ import annotations

import collections
import sys
import weakref

import ray
import transfer_queue as tq
from verl.trainer.ppo.v1.agent_loop_tq import AgentLoopManagerTQ, AgentLoopWorkerTQ
from verl.utils import normalize_token_ids
from verl.workers.rollout.llm_server import FullyAsyncLLMServerClient, LLMServerClient
from verl.workers.rollout.replica import TokenOutput

from .admission import ANNOUNCED
from .attempts import Attempts
from .options import Options


def _scores_comparable(sampling_params: dict) -> bool:
    """Servers score prompts at temperature 1 over the whole vocabulary. Log-probabilities of tokens
    that were sampled otherwise cannot be compared with that."""
    return (sampling_params.get("temperature", 1.0) == 1.0
            and sampling_params.get("top_p", 1.0) in (None, 1.0)
            and sampling_params.get("top_k", -1) in (None, -1, 0)
            and not sampling_params.get("min_p"))


class PaceClient(FullyAsyncLLMServerClient):
    """Answers as verl's client does; `extra_fields["pace"]` holds the `Attempts` of the response.

    The turns of one response share a request id and one `Attempts`. It lives as long as an answer
    that refers to it.
    """

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._options: Options | None = None
        self._attempts: weakref.WeakValueDictionary[str, Attempts] | None = None

    def _attempts_of(self, request_id: str, sampling_params: dict) -> Attempts:
        if self._attempts is None:  # made here: a client travels to the workers before its first use
            self._attempts = weakref.WeakValueDictionary()
        attempts = self._attempts.get(request_id)
        if attempts is None:
            if self._options is None:
                self._options = Options.of_config(self.config)
            least, most = self._options.score_limits
            scores = self._options.needs_scores and _scores_comparable(sampling_params)
            attempts = self._attempts[request_id] = Attempts(least, most, scores)
        return attempts

    async def generate(self, request_id, *, prompt_ids, sampling_params, **kwargs):
        prompt_ids = list(normalize_token_ids(prompt_ids))
        params = dict(sampling_params)
        limit_key = "max_new_tokens" if "max_new_tokens" in params else "max_tokens"
        budget = params.get(limit_key)
        if budget is None:
            budget = self._configured_response_length()
        attempts = self._attempts_of(request_id, params)
        attempts.begin_turn(prompt_ids)
        out = TokenOutput(token_ids=[], log_probs=[], num_preempted=0)
        first_version = cached = None
        while True:
            if budget is not None:
                params[limit_key] = budget - len(out.token_ids)
            params.pop("prompt_logprobs", None)
            if attempts.wants_score:
                params["prompt_logprobs"] = 0
            answer = await LLMServerClient.generate(
                self, request_id, prompt_ids=prompt_ids + out.token_ids, sampling_params=params,
                **dict(kwargs))
            version = answer.extra_fields.get("global_steps")
            full = budget is not None and len(out.token_ids) + len(answer.token_ids) >= budget
            aborted = answer.stop_reason in ("abort", "aborted") and not full
            attempts.add(version, answer.token_ids, answer.log_probs,
                         answer.extra_fields.get("prompt_logprobs"), aborted)
            _append(out, answer)
            first_version = version if first_version is None else first_version
            if cached is None:
                cached = answer.extra_fields.get("num_cached_tokens")
            if full:
                out.stop_reason = "length"
            if not aborted:
                break
        out.extra_fields = {**_kept(answer.extra_fields), "global_steps": version,
                            "min_global_steps": first_version, "max_global_steps": version,
                            "num_cached_tokens": cached, "pace": attempts}
        return out


def _append(out: TokenOutput, answer: TokenOutput) -> None:
    out.token_ids.extend(answer.token_ids)
    if answer.log_probs is not None:
        out.log_probs.extend(answer.log_probs)
    if answer.routed_experts is not None and len(answer.token_ids) > 0:
        if out.routed_experts is None:
            out.routed_experts = answer.routed_experts
        else:
            import numpy

            out.routed_experts = numpy.concatenate(
                [out.routed_experts, answer.routed_experts[-len(answer.token_ids):]])
    out.num_preempted += answer.num_preempted or 0
    out.stop_reason = answer.stop_reason


def _kept(extra: dict) -> dict:
    """Scores of a whole prompt are large and have been read."""
    return {key: value for key, value in extra.items()
            if key not in ("prompt_logprobs", "prompt_ids")}


class PaceAgentLoopWorker(AgentLoopWorkerTQ.__ray_actor_class__):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        # uid -> session -> what the sampler needs of its trajectories, by key
        self._sessions: dict[str, dict[int, dict]] = {}

    async def _run_prompt(self, prompt, sampling_params, trajectory, trace=False):
        """Announces the group once verl has marked it finished or failed."""
        if trajectory["validate"]:
            await super()._run_prompt(prompt, sampling_params, trajectory, trace)
            return
        uid = prompt["uid"]
        size = prompt.get("__rollout_n__", self.config.actor_rollout_ref.rollout.n)
        step = int(prompt.get("global_steps", 1))
        sessions = self._sessions[uid] = {}
        try:
            await super()._run_prompt(prompt, sampling_params, trajectory, trace)
        finally:
            del self._sessions[uid]
        members = {key: tag for session in sessions.values() for key, tag in session.items()}
        # A session without a trajectory counts for verl, but there is nothing to train on.
        status = "finished" if len(sessions) == size and members else "failure"
        await tq.async_kv_put(key=uid, partition_id=ANNOUNCED, tag={
            "status": status, "global_steps": step, "members": members})

    async def _agent_loop_postprocess(self, output, validate, **kwargs):
        outputs = output if isinstance(output, list) else [output]
        # Removed before verl stores the fields: it belongs to this process.
        attempts = [one.extra_fields.pop("pace", None) for one in outputs]
        await super()._agent_loop_postprocess(output, validate, **kwargs)
        if validate:
            return
        uid, session = kwargs["uid"], kwargs["session_id"]
        members = {}
        for index, (one, kept) in enumerate(zip(outputs, attempts)):
            key = f"{uid}_{session}_{index}"
            members[key] = _tag_of(one)
            if kept is not None:
                members[key]["pace"] = {**kept.tag(), "reward": members[key].pop("reward")}
                await tq.async_kv_put(key=key, partition_id="train",
                                      tag={"pace": members[key]["pace"]})
        self._sessions[uid][session] = members


def _tag_of(output) -> dict:
    return {"min_global_steps": output.extra_fields.get("min_global_steps"),
            "max_global_steps": output.extra_fields.get("max_global_steps"),
            "response_len": len(output.response_ids),
            "reward": None if output.reward_score is None else float(output.reward_score)}


class PaceAgentLoops(AgentLoopManagerTQ):
    """verl's agent loops with `PaceClient`; they announce finished groups. Under just-in-time supply
    prompts wait in `_held` until the sampler starts them; validation starts at once.

    Prompts are dispatched without waiting for the worker, which answers only after it has begun to
    process them: a step that refills many groups would wait for that. Errors of a dispatch are raised
    by the next one, or by `check` while a step waits.
    """

    announces = True

    def __init__(self, config, llm_client, *args, **kwargs):
        client = PaceClient(config=config, load_balancer_handle=llm_client._load_balancer,
                            only_hybrid=getattr(llm_client, "_only_hybrid", False))
        super().__init__(config, client, *args, **kwargs)
        self.agent_loop_workers_class = ray.remote(PaceAgentLoopWorker)
        self._holds = Options.of_config(config).just_in_time
        self._held = collections.deque()
        self._num_new = 0
        self._next_worker = 0
        self._dispatched = []  # calls that were not answered when last looked at

    def generate_sequences(self, prompts) -> None:
        if "validate" in prompts and prompts["validate"]:
            super().generate_sequences(prompts)
        elif self._holds:
            self._held.extend(prompts[index:index + 1] for index in range(len(prompts)))
            self._num_new += len(prompts)
        else:
            chunks = prompts.chunk(len(self.agent_loop_workers))
            self._dispatch(zip(self.agent_loop_workers, chunks))

    def num_submitted(self) -> int:
        """Prompts that verl has submitted since the last call."""
        count, self._num_new = self._num_new, 0
        return count

    def start(self, count: int) -> None:
        """Starts the oldest held prompts."""
        calls = []
        for _ in range(min(count, len(self._held))):
            worker = self.agent_loop_workers[self._next_worker % len(self.agent_loop_workers)]
            self._next_worker += 1
            calls.append((worker, self._held.popleft()))
        self._dispatch(calls)

    def check(self) -> None:
        """Raises what a dispatch raised in a worker."""
        if self._dispatched:
            done, self._dispatched = ray.wait(self._dispatched, num_returns=len(self._dispatched),
                                              timeout=0)
            ray.get(done)

    def _dispatch(self, calls) -> None:
        self.check()
        self._dispatched.extend(worker.generate_sequences.remote(prompts)
                                for worker, prompts in calls)


# Ray copies every inherited method into an actor's class and pickles it by value. verl's undecorated
# AgentLoopWorkerTQ has no name to be found by, so its `super()` would meet a second copy of the
# class; with this module by value, too, there is one copy.
ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
