#!/usr/bin/env bash
# stairs_flat: policy flat in environment stairs, episodes 0 to 99
# By hand, in any terminal: bash session.sh. What a start grants (COMBORUN_...) has then the values below.

run=${COMBORUN_RUN_DIR:-$(cd -- "${0%session.sh}../.." && pwd)}
session_failure=${COMBORUN_FAILURE-}
session_script=$run/sessions/stairs_flat/session.sh
export COMBORUN_RUN_DIR=$run COMBORUN_RESULTS_DIR=$run/results
export COMBORUN_RUN=${COMBORUN_RUN:-${run##*/}} COMBORUN_ATTEMPT=${COMBORUN_ATTEMPT:-1}
export COMBORUN_SESSION=${COMBORUN_SESSION:-by-hand/stairs_flat/$$}
export COMBORUN_OUTPUT_DIR=${COMBORUN_OUTPUT_DIR:-$run/sessions/stairs_flat/by-hand}
export COMBORUN_FIRST_EPISODE=${COMBORUN_FIRST_EPISODE:-0} COMBORUN_EPISODES=${COMBORUN_EPISODES:-100}
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
export OMNI_KIT_ACCEPT_EULA=YES
cd -- "$HOME"/IsaacLab || session_fail 78 "there is no folder ""$HOME"/IsaacLab no_folder path "$HOME"/IsaacLab
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
  local number=$((setup_at - setup_first)) line=${lines[setup_at - 1]}
  session_fail 78 "setup line $number failed with code $code: $line" \
    setup_failed number "$number" exit "$code" line "$line"
}
setup() {
trap setup_next DEBUG && trap setup_failed ERR && trap 'setup_failed exit' EXIT && setup_first=$LINENO
source ~/miniconda3/etc/profile.d/conda.sh
conda activate env_isaaclab
}
setup
setup_code=$?
trap - DEBUG ERR EXIT
set +eu
((setup_code == 0)) || session_fail 78 "setup returned $setup_code" setup_returned exit "$setup_code"

command=(
  ./isaaclab.sh
  -p "$HOME"/4_env_test/src/run_capstone_eval.py
  --headless
  --num_episodes "$COMBORUN_EPISODES"
  --policy flat
  --env stairs
  --checkpoint "$HOME"/ckpt/flat.pt
  --output_dir "$COMBORUN_OUTPUT_DIR"
)
shopt -s execfail
exec -- "${command[@]}" ||
  session_fail $? "${command[0]} could not be run in $PWD" could_not_run program "${command[0]}" folder "$PWD"
