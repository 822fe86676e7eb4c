#!/usr/bin/env bash
# turning_on_radio_pi05: policy pi05 in environment turning_on_radio, episodes 0 to 15
name=turning_on_radio_pi05
unit=episode
first=0
count=16
workdir="$HOME"/RLinf
results=()
success='"success_once" *: *(true|1(\.0*)?|" *[Tt][Rr][Uu][Ee] *") *[,}]'
results_log=1
variables=(
  PYTHONUNBUFFERED=1
  HYDRA_FULL_ERROR=1
  OMNIGIBSON_HEADLESS=1
  TOKENIZERS_PARALLELISM=false
)
setup() {
source ~/RLinf/.venv/bin/activate
}
evidence_line=eval/success_once
max_s=43200
signatures=(
  'error Exiting main process due to a failure upon worker execution'
)
pin=none
source "${0%session.sh}../../lib/session.sh"
session::prepare "$@"
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
session::run
