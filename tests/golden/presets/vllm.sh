#!/usr/bin/env bash
# it: a model server, until no session is left that asks it
# By hand, in any terminal: bash session.sh. What a start grants (COMBORUN_...) has then the values below.

run=${COMBORUN_RUN_DIR:-$(cd -- "${0%session.sh}../.." && pwd)}
session_failure=${COMBORUN_FAILURE-}
export COMBORUN_RUN_DIR=$run COMBORUN_RESULTS_DIR=$run/results
export COMBORUN_RUN=${COMBORUN_RUN:-${run##*/}} COMBORUN_ATTEMPT=${COMBORUN_ATTEMPT:-1}
export COMBORUN_SESSION=${COMBORUN_SESSION:-by-hand/it/$$}
export COMBORUN_OUTPUT_DIR=${COMBORUN_OUTPUT_DIR:-$run/servers/it/by-hand}
export COMBORUN_FIRST_EPISODE=${COMBORUN_FIRST_EPISODE:-0} COMBORUN_EPISODES=${COMBORUN_EPISODES:-0}
export COMBORUN_LAST_EPISODE=$((COMBORUN_FIRST_EPISODE + COMBORUN_EPISODES - 1))
export COMBORUN_END_EPISODE=$((COMBORUN_FIRST_EPISODE + COMBORUN_EPISODES))
export COMBORUN_GPUS=${COMBORUN_GPUS-0} COMBORUN_GPU_COUNT=${COMBORUN_GPU_COUNT-1}
export COMBORUN_GPU=${COMBORUN_GPUS%%,*}
export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES-0}
export COMBORUN_PORT=${COMBORUN_PORT:-28765}
export PYTHONUNBUFFERED=1

session_fail() { # CODE WHY: the command is not started
  printf 'comborun: %s\n' "${*:2}" >&2
  [[ ! $session_failure ]] || printf '%s\n' "${*:2}" >"$session_failure"
  exit "$1"
}

[[ -d $COMBORUN_OUTPUT_DIR ]] || mkdir -p -- "$COMBORUN_OUTPUT_DIR" ||
  session_fail 73 "can't make $COMBORUN_OUTPUT_DIR"
unset COMBORUN_FAILURE

command=(
  vllm
  serve
  Qwen/Qwen2.5-VL-7B-Instruct
  --host 127.0.0.1
  --port "$COMBORUN_PORT"
  --served-model-name Qwen/Qwen2.5-VL-7B-Instruct
  --tensor-parallel-size "$COMBORUN_GPU_COUNT"
  --gpu-memory-utilization 0.5
  --max-model-len 8192
)
shopt -s execfail
exec -- "${command[@]}" || session_fail $? "${command[0]} could not be run in $PWD"
