#!/usr/bin/env bash
# GraspSingleOpenedCokeCanInScene-v0_octo: policy octo in environment GraspSingleOpenedCokeCanInScene-v0, episodes 0 to 59
name=GraspSingleOpenedCokeCanInScene-v0_octo
unit=episode
first=0
count=60
workdir="$HOME"/SimplerEnv
results=('**/success_obj_*.mp4' '**/failure_obj_*.mp4')
success='"success" *: *(true|1(\.0*)?|" *[Tt][Rr][Uu][Ee] *") *[,}]'
variables=(
  PYTHONUNBUFFERED=1
)
setup() {
source ~/miniconda3/etc/profile.d/conda.sh
conda activate simpler_env
}
ranged=1
episode=episode
evidence_records=0
evidence_results=1
evidence_line='Average success [0-9.]+'
stall_s=1800
threads=8
source "${0%session.sh}../../lib/session.sh"
session::prepare "$@"
command=(
  python
  simpler_env/main_inference.py
  --policy-model octo-base
  --policy-setup google_robot
  --ckpt-path None
  --robot google_robot_static
  --env-name GraspSingleOpenedCokeCanInScene-v0
  --scene-name google_pick_coke_can_1_v4
  --obj-variation-mode episode
  --obj-episode-range "$COMBORUN_FIRST_EPISODE" "$COMBORUN_END_EPISODE"
  --logging-dir "$COMBORUN_OUTPUT_DIR"
  --tf-memory-limit 3072
)
session::run
