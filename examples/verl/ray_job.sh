#!/usr/bin/env bash
# verl 0.9.1 with PACE on a Ray cluster with GPUs. Every node has verl, vLLM 0.24 and pace.
# 8 GPUs train, 8 generate; change these and the model. Not run by any test of this repository.
#
#   RAY_ADDRESS=http://HEAD:8265 examples/verl/ray_job.sh CHECKPOINTS DATA MODEL [OVERRIDES...]
set -euo pipefail
checkpoints=$1 data=$2 model=$3
shift 3

overrides=(
  trainer.nnodes=1 trainer.n_gpus_per_node=8
  actor_rollout_ref.rollout.nnodes=1 actor_rollout_ref.rollout.n_gpus_per_node=8
  actor_rollout_ref.rollout.name=vllm actor_rollout_ref.rollout.tensor_model_parallel_size=1
  actor_rollout_ref.rollout.checkpoint_engine.backend=nccl
  actor_rollout_ref.model.path="$model" actor_rollout_ref.rollout.n=12
  actor_rollout_ref.actor.strategy=fsdp2 actor_rollout_ref.actor.ppo_mini_batch_size=64
  data.train_files="$data/train.parquet" data.val_files="$data/val.parquet"
  data.train_batch_size=64 data.max_prompt_length=1024 data.max_response_length=8192
  algorithm.adv_estimator=grpo
  trainer.default_local_dir="$checkpoints" trainer.save_freq=20 trainer.resume_mode=auto
)
# The package need not be installed where the job is submitted.
config='$(python -m pace.verl config)'
exec ray job submit --runtime-env-json '{"env_vars": {"VERL_LOGGING_LEVEL": "WARN"}}' -- \
  bash -c "python -m pace.verl check ${overrides[*]} $* || true
    exec python -m verl.trainer.main_ppo --config-dir \"$config\" --config-name pace \
      ${overrides[*]} $*"
