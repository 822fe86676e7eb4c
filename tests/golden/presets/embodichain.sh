#!/usr/bin/env bash
# pick_ppo: policy ppo in environment pick, steps 0 to 99999
# By hand, in any terminal: bash session.sh. What a start grants (COMBORUN_...) has then the values below.

run=${COMBORUN_RUN_DIR:-$(cd -- "${0%session.sh}../.." && pwd)}
session_failure=${COMBORUN_FAILURE-}
session_script=$run/sessions/pick_ppo/session.sh
export COMBORUN_RUN_DIR=$run COMBORUN_RESULTS_DIR=$run/results
export COMBORUN_RUN=${COMBORUN_RUN:-${run##*/}} COMBORUN_ATTEMPT=${COMBORUN_ATTEMPT:-1}
export COMBORUN_SESSION=${COMBORUN_SESSION:-by-hand/pick_ppo/$$}
export COMBORUN_OUTPUT_DIR=${COMBORUN_OUTPUT_DIR:-$run/sessions/pick_ppo/by-hand}
export COMBORUN_FIRST_EPISODE=${COMBORUN_FIRST_EPISODE:-0} COMBORUN_EPISODES=${COMBORUN_EPISODES:-100000}
export COMBORUN_LAST_EPISODE=$((COMBORUN_FIRST_EPISODE + COMBORUN_EPISODES - 1))
export COMBORUN_END_EPISODE=$((COMBORUN_FIRST_EPISODE + COMBORUN_EPISODES))
export COMBORUN_EPISODES_PER_RANK=$(((COMBORUN_EPISODES + 0) / 1))
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
export EMBODICHAIN_SIM_EXIT_PROCESS=0
from="$HOME"/EmbodiChain work=$COMBORUN_OUTPUT_DIR/work
[[ -d $from ]] || session_fail 78 "there is no folder $from"
mkdir -p -- "$work" || session_fail 73 "can't make $work"
find "${from%/}/" -mindepth 1 -maxdepth 1 ! -name outputs -exec ln -sfn -t "$work" -- {} + ||
  session_fail 73 "can't make links in $work"
cd -- "$work" || session_fail 78 "there is no folder $work"
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
conda activate embodichain
}
setup
setup_code=$?
trap - DEBUG ERR EXIT
set +eu
((setup_code == 0)) || session_fail 78 "setup returned $setup_code"

command=(
  python
  -m torch.distributed.run
  --standalone
  --nproc_per_node="$COMBORUN_GPU_COUNT"
  --log_dir="$COMBORUN_OUTPUT_DIR"/ranks
  --tee=3
  -m embodichain train-rl
  --config "$HOME"/configs/pick/ppo.json
  --distributed
)
shopt -s execfail
exec -- "${command[@]}" || session_fail $? "${command[0]} could not be run in $PWD"
