#!/usr/bin/env bash
# habitat_cosmos: policy cosmos in environment habitat, episodes 0 to 49
# By hand, in any terminal: bash session.sh. What a start grants (COMBORUN_...) has then the values below.

run=${COMBORUN_RUN_DIR:-$(cd -- "${0%session.sh}../.." && pwd)}
session_failure=${COMBORUN_FAILURE-}
session_script=$run/sessions/habitat_cosmos/session.sh
export COMBORUN_RUN_DIR=$run COMBORUN_RESULTS_DIR=$run/results
export COMBORUN_RUN=${COMBORUN_RUN:-${run##*/}} COMBORUN_ATTEMPT=${COMBORUN_ATTEMPT:-1}
export COMBORUN_SESSION=${COMBORUN_SESSION:-by-hand/habitat_cosmos/$$}
export COMBORUN_OUTPUT_DIR=${COMBORUN_OUTPUT_DIR:-$run/sessions/habitat_cosmos/by-hand}
export COMBORUN_FIRST_EPISODE=${COMBORUN_FIRST_EPISODE:-0} COMBORUN_EPISODES=${COMBORUN_EPISODES:-50}
export COMBORUN_LAST_EPISODE=$((COMBORUN_FIRST_EPISODE + COMBORUN_EPISODES - 1))
export COMBORUN_END_EPISODE=$((COMBORUN_FIRST_EPISODE + COMBORUN_EPISODES))
export COMBORUN_GPUS=${COMBORUN_GPUS-0} COMBORUN_GPU_COUNT=${COMBORUN_GPU_COUNT-1}
export COMBORUN_GPU=${COMBORUN_GPUS%%,*}
export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES-0}
export PYTHONUNBUFFERED=1
export COMBORUN_THREADS=8
export OMP_NUM_THREADS=$COMBORUN_THREADS
export MKL_NUM_THREADS=$COMBORUN_THREADS
export OPENBLAS_NUM_THREADS=$COMBORUN_THREADS
export NUMEXPR_NUM_THREADS=$COMBORUN_THREADS
export VECLIB_MAXIMUM_THREADS=$COMBORUN_THREADS
export PXR_WORK_THREAD_LIMIT=$COMBORUN_THREADS
export LP_NUM_THREADS=$COMBORUN_THREADS

session_fail() { # CODE WHY: the command is not started
  printf 'comborun: %s\n' "${*:2}" >&2
  [[ ! $session_failure ]] || printf '%s\n' "${*:2}" >"$session_failure"
  exit "$1"
}

[[ -d $COMBORUN_OUTPUT_DIR ]] || mkdir -p -- "$COMBORUN_OUTPUT_DIR" ||
  session_fail 73 "can't make $COMBORUN_OUTPUT_DIR"
export PYTHONUNBUFFERED=1
cd -- "$HOME"/EmbodiedBench || session_fail 78 "there is no folder" "$HOME"/EmbodiedBench
unset COMBORUN_FAILURE

# Setup stops at its first line that fails; what fails inside a script or function that it calls does not count.
setup_next() {
  ((BASH_LINENO[0] == 1)) || setup_at=${BASH_LINENO[0]}
  set +eu # of a sourced script
}
setup_failed() { # [exit]
  local code=$? lines
  [[ ${1-} ]] || ((${#BASH_SOURCE[@]} < 4)) || return 0 # in a sourced script
  trap - DEBUG ERR EXIT
  mapfile -t lines <"$session_script"
  session_fail 78 "setup line $((setup_at - setup_first)) failed with code $code: ${lines[setup_at - 1]}"
}
setup() {
trap setup_next DEBUG && trap setup_failed ERR && trap 'setup_failed exit' EXIT && setup_first=$LINENO
source ~/miniconda3/etc/profile.d/conda.sh
conda activate embench
}
setup
setup_code=$?
trap - DEBUG ERR EXIT
set +eu
((setup_code == 0)) || session_fail 78 "setup returned $setup_code"

command=(
  python
  cosmos_agent/cosmos_agent.py
  --env habitat
  --model_path "$HOME"/checkpoints/Cosmos-Reason2-8B
  --num_episodes "$COMBORUN_EPISODES"
  --start_episode "$COMBORUN_FIRST_EPISODE"
  --output_dir "$COMBORUN_OUTPUT_DIR"
)
shopt -s execfail
exec -- "${command[@]}" || session_fail $? "${command[0]} could not be run in $PWD"
