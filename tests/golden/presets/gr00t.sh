#!/usr/bin/env bash
# libero_sim-pick_up_the_black_bowl_base: policy base in environment libero_sim/pick_up_the_black_bowl, episodes 0 to 49
# By hand, in any terminal: bash session.sh. What a start grants (COMBORUN_...) has then the values below.

run=${COMBORUN_RUN_DIR:-$(cd -- "${0%session.sh}../.." && pwd)}
session_failure=${COMBORUN_FAILURE-}
session_script=$run/sessions/libero_sim-pick_up_the_black_bowl_base/session.sh
export COMBORUN_RUN_DIR=$run COMBORUN_RESULTS_DIR=$run/results
export COMBORUN_RUN=${COMBORUN_RUN:-${run##*/}} COMBORUN_ATTEMPT=${COMBORUN_ATTEMPT:-1}
export COMBORUN_SESSION=${COMBORUN_SESSION:-by-hand/libero_sim-pick_up_the_black_bowl_base/$$}
export COMBORUN_OUTPUT_DIR=${COMBORUN_OUTPUT_DIR:-$run/sessions/libero_sim-pick_up_the_black_bowl_base/by-hand}
export COMBORUN_FIRST_EPISODE=${COMBORUN_FIRST_EPISODE:-0} COMBORUN_EPISODES=${COMBORUN_EPISODES:-50}
export COMBORUN_LAST_EPISODE=$((COMBORUN_FIRST_EPISODE + COMBORUN_EPISODES - 1))
export COMBORUN_END_EPISODE=$((COMBORUN_FIRST_EPISODE + COMBORUN_EPISODES))
export COMBORUN_GPUS=${COMBORUN_GPUS-0} COMBORUN_GPU_COUNT=${COMBORUN_GPU_COUNT-1}
export COMBORUN_GPU=${COMBORUN_GPUS%%,*}
export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES-0}
export COMBORUN_EGL_DEVICE=${COMBORUN_EGL_DEVICE-${COMBORUN_GPU-0}}
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
export CUDA_VISIBLE_DEVICES="$COMBORUN_GPUS"
export MUJOCO_EGL_DEVICE_ID="$COMBORUN_EGL_DEVICE"
cd -- "$HOME"/Isaac-GR00T || session_fail 78 "there is no folder" "$HOME"/Isaac-GR00T
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
source .venv/bin/activate
}
setup
setup_code=$?
trap - DEBUG ERR EXIT
set +eu
((setup_code == 0)) || session_fail 78 "setup returned $setup_code"

command=(
  python
  gr00t/eval/rollout_policy.py
  --env_name libero_sim/pick_up_the_black_bowl
  --n_episodes "$COMBORUN_EPISODES"
  --n_envs 1
  --max_episode_steps 504
  --n_action_steps 8
  --policy_client_host 127.0.0.1
  --policy_client_port 5555
)
shopt -s execfail
exec -- "${command[@]}" || session_fail $? "${command[0]} could not be run in $PWD"
