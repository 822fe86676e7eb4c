#!/usr/bin/env bash
# maze_pi0-5: policy 'pi0.5 '"'"'new'"'"'' in environment maze, steps as the program decides
# By hand, in any terminal: bash session.sh. What a start grants (COMBORUN_...) has then the values below.

run=${COMBORUN_RUN_DIR:-$(cd -- "${0%session.sh}../.." && pwd)}
session_failure=${COMBORUN_FAILURE-}
export COMBORUN_RUN_DIR=$run COMBORUN_RESULTS_DIR=$run/results
export COMBORUN_RUN=${COMBORUN_RUN:-${run##*/}} COMBORUN_ATTEMPT=${COMBORUN_ATTEMPT:-1}
export COMBORUN_SESSION=${COMBORUN_SESSION:-by-hand/maze_pi0-5/$$}
export COMBORUN_OUTPUT_DIR=${COMBORUN_OUTPUT_DIR:-$run/sessions/maze_pi0-5/by-hand}
export COMBORUN_FIRST_EPISODE=${COMBORUN_FIRST_EPISODE:-0} COMBORUN_EPISODES=${COMBORUN_EPISODES:-0}
export COMBORUN_LAST_EPISODE=$((COMBORUN_FIRST_EPISODE + COMBORUN_EPISODES - 1))
export COMBORUN_END_EPISODE=$((COMBORUN_FIRST_EPISODE + COMBORUN_EPISODES))
export COMBORUN_GPUS=${COMBORUN_GPUS-0} COMBORUN_GPU_COUNT=${COMBORUN_GPU_COUNT-1}
export COMBORUN_GPU=${COMBORUN_GPUS%%,*}
export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES-0}
export PYTHONUNBUFFERED=1

session_fail() { # EXIT WHY CODE [KEY VALUE]...: the command is not started; a record says why, or by hand a line
  if [[ ! $session_failure ]] || ! printf '%s\0' "${@:3}" >"$session_failure"; then
    printf 'comborun: %s\n' "$2" >&2
  fi
  exit "$1"
}

[[ -d $COMBORUN_OUTPUT_DIR ]] || mkdir -p -- "$COMBORUN_OUTPUT_DIR" ||
  session_fail 73 "can't make $COMBORUN_OUTPUT_DIR" cannot_make path "$COMBORUN_OUTPUT_DIR"
unset COMBORUN_FAILURE

command=(
  train
  'pi0.5 '"'"'new'"'"''
  --seed 3
)
shopt -s execfail
exec -- "${command[@]}" ||
  session_fail $? "${command[0]} could not be run in $PWD" could_not_run program "${command[0]}" folder "$PWD"
