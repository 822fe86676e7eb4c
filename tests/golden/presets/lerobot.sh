#!/usr/bin/env bash
# libero_spatial_smolvla: policy smolvla in environment libero_spatial, episodes 0 to 499
# By hand, in any terminal: bash session.sh. What a start grants (COMBORUN_...) has then the values below.

run=${COMBORUN_RUN_DIR:-$(cd -- "${0%session.sh}../.." && pwd)}
session_failure=${COMBORUN_FAILURE-}
session_script=$run/sessions/libero_spatial_smolvla/session.sh
export COMBORUN_RUN_DIR=$run COMBORUN_RESULTS_DIR=$run/results
export COMBORUN_RUN=${COMBORUN_RUN:-${run##*/}} COMBORUN_ATTEMPT=${COMBORUN_ATTEMPT:-1}
export COMBORUN_SESSION=${COMBORUN_SESSION:-by-hand/libero_spatial_smolvla/$$}
export COMBORUN_OUTPUT_DIR=${COMBORUN_OUTPUT_DIR:-$run/sessions/libero_spatial_smolvla/by-hand}
export COMBORUN_FIRST_EPISODE=${COMBORUN_FIRST_EPISODE:-0} COMBORUN_EPISODES=${COMBORUN_EPISODES:-500}
export COMBORUN_LAST_EPISODE=$((COMBORUN_FIRST_EPISODE + COMBORUN_EPISODES - 1))
export COMBORUN_END_EPISODE=$((COMBORUN_FIRST_EPISODE + COMBORUN_EPISODES))
export COMBORUN_GPUS=${COMBORUN_GPUS-0} COMBORUN_GPU_COUNT=${COMBORUN_GPU_COUNT-1}
export COMBORUN_GPU=${COMBORUN_GPUS%%,*}
export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES-0}
export COMBORUN_EGL_DEVICE=${COMBORUN_EGL_DEVICE-${COMBORUN_GPU-0}}
export PYTHONUNBUFFERED=1
export COMBORUN_THREADS=4
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
export MUJOCO_GL=egl
export CUDA_VISIBLE_DEVICES="$COMBORUN_GPUS"
export MUJOCO_EGL_DEVICE_ID="$COMBORUN_EGL_DEVICE"
cd -- /grids || session_fail 78 "there is no folder" /grids
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
conda activate lerobot
}
setup
setup_code=$?
trap - DEBUG ERR EXIT
set +eu
((setup_code == 0)) || session_fail 78 "setup returned $setup_code"

command=(
  lerobot-eval
  --policy.path=lerobot/smolvla_libero
  --env.type=libero
  --env.task=libero_spatial
  --eval.n_episodes=50
  --eval.batch_size=10
  --policy.device=cuda
  --policy.use_amp=false
  --seed=1000
  --output_dir="$COMBORUN_OUTPUT_DIR"
)
shopt -s execfail
exec -- "${command[@]}" || session_fail $? "${command[0]} could not be run in $PWD"
