"""What a verl configuration would do, simulated before GPUs are rented.

    python -m pace.verl sim CONFIG... [--methods pace,raw,observe] [--set workload.mean_tokens=3000]

`settings_of` maps a configuration to settings of pace: batch, group size, supply, GPUs, length
limits, and the shape of the model where its config.json can be read. What a configuration does not
say, such as how long responses are, keeps pace's default and is listed: state it with `--set`.
"""

from __future__ import annotations

import json
import os

from .. import _core
from ..sim import simulate
from .configuration import Configuration
from .options import Options

_MODEL_KEYS = {
    "model.num_layers": "num_hidden_layers", "model.hidden": "hidden_size",
    "model.num_heads": "num_attention_heads", "model.num_kv_heads": "num_key_value_heads",
    "model.head_dim": "head_dim", "model.ffn": "intermediate_size", "model.vocab": "vocab_size",
    "model.tied_embeddings": "tie_word_embeddings", "model.num_experts": "num_experts",
    "model.experts_per_token": "num_experts_per_tok", "model.expert_ffn": "moe_intermediate_size",
}


def settings_of(config: Configuration, method: str | None = None,
                changes: tuple[str, ...] = ()) -> tuple[_core.Settings, list[str]]:
    """Settings for the simulator, and lines on what was assumed."""
    if config["trainer.v1.trainer_mode"] != "separate_async":
        raise _core.InvalidArgument(
            f"trainer.v1.trainer_mode = {config['trainer.v1.trainer_mode']}: pace simulates "
            "separate_async")
    kwargs = config.section("trainer.v1.sampler.sampler_kwargs")
    options = Options.read({**kwargs, "method": method or kwargs.get("method", "pace")})
    steps = config.number("trainer.v1.separate_async.parameter_sync_step")
    set_ = {
        "run.num_steps": int(config.get("trainer.total_training_steps") or 200),
        "batch.num_updates": int(steps * config.number("actor_rollout_ref.actor.ppo_epochs")),
        "cluster.rollout_gpus": _product(config, "actor_rollout_ref.rollout"),
        "cluster.trainer_gpus": _product(config, "trainer"),
        "cluster.gpus_per_node": max(1, int(config.number("trainer.n_gpus_per_node"))),
        "cluster.tensor_parallel":
            int(config.number("actor_rollout_ref.rollout.tensor_model_parallel_size")),
        "cluster.slots": int(config.number("actor_rollout_ref.rollout.max_num_seqs")),
        "cluster.memory_share": config.number("actor_rollout_ref.rollout.gpu_memory_utilization"),
        # Old log-probabilities are a forward pass unless the rollout's are taken.
        "cluster.extra_forwards":
            0 if config["algorithm.rollout_correction.bypass_mode"] else 1,
        "workload.max_tokens": int(config.number("data.max_response_length")),
        "workload.prompt_tokens": max(1, int(config.number("data.max_prompt_length")) // 2),
        "workload.mean_tokens": max(1, int(config.number("data.max_response_length")) // 2),
    }
    lines = ["workload.mean_tokens = half of data.max_response_length",
             "workload.prompt_tokens = half of data.max_prompt_length",
             "gpu: an A100 with 80 GiB"]
    model, line = _model_of(config.get("actor_rollout_ref.model.path"))
    set_.update(model)
    lines.append(line)
    settings = options.session_settings(
        batch=int(config.number("data.train_batch_size")),
        group_size=int(config.number("actor_rollout_ref.rollout.n")),
        threshold=config.number("trainer.v1.separate_async.num_warmup_batches"))
    for key, value in set_.items():
        settings[key] = value
    stated = {change.partition("=")[0] for change in changes}
    for change in changes:
        key, separator, value = change.partition("=")
        if not separator:
            raise _core.InvalidArgument(f"--set {change}: must be key=value")
        settings[key] = value
    settings.validate()
    return settings, [line for line in lines
                      if not any(line.startswith(key.split(".")[0] + ":") or line.startswith(key)
                                 for key in stated)]


def _product(config: Configuration, prefix: str) -> int:
    count = int(config.number(f"{prefix}.nnodes")) * int(config.number(f"{prefix}.n_gpus_per_node"))
    if count < 1:
        raise _core.InvalidArgument(
            f"{prefix}.nnodes * {prefix}.n_gpus_per_node = {count}: must be >= 1 in separate_async")
    return count


def _model_of(path) -> tuple[dict, str]:
    file = os.path.join(str(path), "config.json") if path else ""
    if not os.path.isfile(file):
        return {}, f"model: Qwen3-4B ({path or 'actor_rollout_ref.model.path'} is no folder here)"
    with open(file, encoding="utf-8") as stream:
        shape = json.load(stream)
    shape = shape.get("text_config", shape)
    return ({key: shape[name] for key, name in _MODEL_KEYS.items()
             if shape.get(name) is not None}, f"model: {file}")


def simulate_all(config: Configuration, methods: list[str], changes: tuple[str, ...]):
    """Yields the method and what its simulation gave, one after the other."""
    for method in methods:
        settings, _ = settings_of(config, method, changes)
        yield method, simulate(settings)
