#!/usr/bin/env bash
# verl 0.9.1 with PACE on one machine without GPUs: 20 steps of a small random model, a two-rank
# FSDP2 actor, two replicas of `pace serve`. The Python on the path has verl and pace.
#
#   examples/verl/run.sh FOLDER [OVERRIDES...]
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
mkdir -p "$1"
folder=$(cd "$1" && pwd)
shift

export PACE_PROGRAM=${PACE_PROGRAM:-$here/../../build/pace}
data=${PACE_VERL_ASSETS:-$folder/data}
[[ -e $data/reward.py ]] || python "$here/make_assets.py" "$data" "$here/../../models/tiny"
exec python -m pace.verl run \
  hydra.run.dir="$folder/hydra" trainer.default_local_dir="$folder/run" \
  trainer.total_training_steps=20 trainer.total_epochs=100 \
  trainer.v1.separate_async.num_warmup_batches=4 \
  data.train_files="$data/train.parquet" data.val_files="$data/val.parquet" \
  data.train_batch_size=4 data.max_prompt_length=32 data.max_response_length=512 \
  actor_rollout_ref.model.path="$data/model" \
  actor_rollout_ref.actor.ppo_mini_batch_size=4 \
  actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4 \
  actor_rollout_ref.actor.optim.lr=1e-4 \
  actor_rollout_ref.rollout.n=4 actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=4 \
  algorithm.adv_estimator=grpo \
  reward.custom_reward_function.path="$data/reward.py" \
  reward.custom_reward_function.name=compute_score "$@"
