#!/usr/bin/env bash
# turning_on_radio_pi05: policy pi05 in environment turning_on_radio, episodes 0 to 15
# By hand, in any terminal: bash session.sh. What a start grants (COMBORUN_...) has then the values below.

run=${COMBORUN_RUN_DIR:-$(cd -- "${0%session.sh}../.." && pwd)}
session_failure=${COMBORUN_FAILURE-}
session_script=$run/sessions/turning_on_radio_pi05/session.sh
export COMBORUN_RUN_DIR=$run COMBORUN_RESULTS_DIR=$run/results
export COMBORUN_RUN=${COMBORUN_RUN:-${run##*/}} COMBORUN_ATTEMPT=${COMBORUN_ATTEMPT:-1}
export COMBORUN_SESSION=${COMBORUN_SESSION:-by-hand/turning_on_radio_pi05/$$}
export COMBORUN_OUTPUT_DIR=${COMBORUN_OUTPUT_DIR:-$run/sessions/turning_on_radio_pi05/by-hand}
export COMBORUN_FIRST_EPISODE=${COMBORUN_FIRST_EPISODE:-0} COMBORUN_EPISODES=${COMBORUN_EPISODES:-16}
export COMBORUN_LAST_EPISODE=$((COMBORUN_FIRST_EPISODE + COMBORUN_EPISODES - 1))
export COMBORUN_END_EPISODE=$((COMBORUN_FIRST_EPISODE + COMBORUN_EPISODES))
export COMBORUN_GPUS=${COMBORUN_GPUS-0,1} COMBORUN_GPU_COUNT=${COMBORUN_GPU_COUNT-2}
export COMBORUN_GPU=${COMBORUN_GPUS%%,*}
export PYTHONUNBUFFERED=1

session_fail() { # CODE WHY: the command is not started
  printf 'comborun: %s\n' "${*:2}" >&2
  [[ ! $session_failure ]] || printf '%s\n' "${*:2}" >"$session_failure"
  exit "$1"
}

[[ -d $COMBORUN_OUTPUT_DIR ]] || mkdir -p -- "$COMBORUN_OUTPUT_DIR" ||
  session_fail 73 "can't make $COMBORUN_OUTPUT_DIR"
export PYTHONUNBUFFERED=1
export HYDRA_FULL_ERROR=1
export OMNIGIBSON_HEADLESS=1
export TOKENIZERS_PARALLELISM=false
cd -- "$HOME"/RLinf || session_fail 78 "there is no folder" "$HOME"/RLinf
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
source ~/RLinf/.venv/bin/activate
}
setup
setup_code=$?
trap - DEBUG ERR EXIT
set +eu
((setup_code == 0)) || session_fail 78 "setup returned $setup_code"

command=(
  bash
  evaluations/run_eval.sh
  behavior_openpi_pi05_eval
  runner.logger.log_path="$COMBORUN_OUTPUT_DIR"
  rollout.model.model_path="$HOME"/checkpoints/pi05
  env.eval.total_num_envs=2
  env.eval.rollout_epoch=8
  env.eval.omni_config.task.activity_name=turning_on_radio
  env.eval.video_cfg.save_video=False
  '~cluster.component_placement'
  '+cluster.component_placement={env:"0-1",rollout:"0-1"}'
)
shopt -s execfail
exec -- "${command[@]}" || session_fail $? "${command[0]} could not be run in $PWD"
