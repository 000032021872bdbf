#!/bin/bash
# One rank for each GPU of one machine or several, started by torchrun. Run the same line on every machine:
#   NODES=2 NODE=0 MASTER=10.0.0.1 GPUS=8 examples/cluster/torchrun.sh --config sokoban-tiny --run-dir runs/big
set -euo pipefail
exec torchrun --nnodes="${NODES:-1}" --node-rank="${NODE:-0}" --nproc-per-node="${GPUS:-2}" \
  --master-addr="${MASTER:-127.0.0.1}" --master-port="${PORT:-29500}" \
  -m arl_gym.cli train "$@"
