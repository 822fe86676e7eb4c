#!/usr/bin/env bash
# alfred-base_qwen: policy qwen in environment alfred-base, episodes as the program decides
# By hand, in any terminal: bash session.sh. What a start grants (COMBORUN_...) has then the values below.

run=${COMBORUN_RUN_DIR:-$(cd -- "${0%session.sh}../.." && pwd)}
session_failure=${COMBORUN_FAILURE-}
session_script=$run/sessions/alfred-base_qwen/session.sh
export COMBORUN_RUN_DIR=$run COMBORUN_RESULTS_DIR=$run/results
export COMBORUN_RUN=${COMBORUN_RUN:-${run##*/}} COMBORUN_ATTEMPT=${COMBORUN_ATTEMPT:-1}
export COMBORUN_SESSION=${COMBORUN_SESSION:-by-hand/alfred-base_qwen/$$}
export COMBORUN_OUTPUT_DIR=${COMBORUN_OUTPUT_DIR:-$run/sessions/alfred-base_qwen/by-hand}
export COMBORUN_FIRST_EPISODE=${COMBORUN_FIRST_EPISODE:-0} COMBORUN_EPISODES=${COMBORUN_EPISODES:-0}
export COMBORUN_LAST_EPISODE=$((COMBORUN_FIRST_EPISODE + COMBORUN_EPISODES - 1))
export COMBORUN_END_EPISODE=$((COMBORUN_FIRST_EPISODE + COMBORUN_EPISODES))
export COMBORUN_GPUS=${COMBORUN_GPUS-0} COMBORUN_GPU_COUNT=${COMBORUN_GPU_COUNT-1}
export COMBORUN_GPU=${COMBORUN_GPUS%%,*}
export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES-0}
export COMBORUN_DISPLAY=${COMBORUN_DISPLAY-:1}
export DISPLAY=$COMBORUN_DISPLAY
export PYTHONUNBUFFERED=1
export COMBORUN_THREADS=16
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
export HYDRA_FULL_ERROR=1
from="$HOME"/EmbodiedBench work=$COMBORUN_OUTPUT_DIR/work
[[ -d $from ]] || session_fail 78 "there is no folder $from"
mkdir -p -- "$work" || session_fail 73 "can't make $work"
find "${from%/}/" -mindepth 1 -maxdepth 1 ! -name data ! -name running -exec ln -sfn -t "$work" -- {} + ||
  session_fail 73 "can't make links in $work"
shopt -s nullglob globstar
patterns=('work/running/**/results/episode_*_res.json')
for pattern in "${patterns[@]}"; do
  # shellcheck disable=SC2206 # a pattern
  IFS= files=("$COMBORUN_OUTPUT_DIR"/$pattern)
  for file in "${files[@]}"; do
    [[ ! -L $file || ${file%/*} != "$work" ]] || rm -f -- "$file"
  done
done
shopt -u nullglob globstar
unset IFS
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
conda activate embench
}
setup
setup_code=$?
trap - DEBUG ERR EXIT
set +eu
((setup_code == 0)) || session_fail 78 "setup returned $setup_code"

command=(
  env
  remote_url=http://127.0.0.1:8000/v1
  python
  -m embodiedbench.main env=eb-alf model_name=Qwen/Qwen2.5-VL-7B-Instruct model_type=remote exp_name=alfred-base_qwen 'eval_sets=[base]' down_sample_ratio=1.0 n_shots=10
)
shopt -s execfail
exec -- "${command[@]}" || session_fail $? "${command[0]} could not be run in $PWD"
