#!/bin/bash
# One rank for each GPU of the machines in a hostfile ("host slots=8" a line), started by DeepSpeed over ssh:
#   HOSTFILE=hosts.txt examples/cluster/deepspeed.sh --config sokoban-tiny --run-dir runs/big
# Without a hostfile, the GPUs of this machine.
set -euo pipefail
options=(--no_local_rank --num_gpus "${GPUS:-2}")
if [[ -n "${HOSTFILE:-}" ]]; then options=(--no_local_rank --hostfile "$HOSTFILE"); fi
exec deepspeed "${options[@]}" --module arl_gym.cli train "$@"
