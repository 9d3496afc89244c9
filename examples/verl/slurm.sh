#!/usr/bin/env bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --exclusive
# Starts a Ray cluster on the nodes of an allocation and submits ray_job.sh to it. Not run by any
# test of this repository.
#
#   sbatch examples/verl/slurm.sh CHECKPOINTS DATA MODEL [OVERRIDES...]
set -euo pipefail
mapfile -t nodes < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
address=$(srun --nodes=1 --ntasks=1 -w "${nodes[0]}" hostname --ip-address | awk '{print $1}')

srun --nodes=1 --ntasks=1 -w "${nodes[0]}" \
  ray start --head --node-ip-address="$address" --port=6379 --dashboard-host=0.0.0.0 --block &
for node in "${nodes[@]:1}"; do
  srun --nodes=1 --ntasks=1 -w "$node" ray start --address="$address:6379" --block &
done
export RAY_ADDRESS=http://$address:8265
until ray job list > /dev/null 2>&1; do sleep 2; done
"$(dirname "${BASH_SOURCE[0]}")/ray_job.sh" "$@"
