#!/usr/bin/env bash
# libero_spatial_openvla: policy openvla in environment libero_spatial, episodes 0 to 499
name=libero_spatial_openvla
unit=episode
first=0
count=500
workdir="$HOME"/openvla
results=('EVAL-*.txt')
success='"success" *: *(true|1(\.0*)?|" *[Tt][Rr][Uu][Ee] *") *[,}]'
variables=(
  PYTHONUNBUFFERED=1
  MUJOCO_GL=egl
)
setup() {
source ~/miniconda3/etc/profile.d/conda.sh
conda activate openvla
}
evidence_records=0
evidence_results=1
evidence_line='# episodes completed so far: {episodes}$'
stall_s=1800
signatures=(
  'launch_failed Do you want to specify a custom path'
  'launch_failed Cannot initialize a EGL device display'
  'launch_failed MUJOCO_EGL_DEVICE_ID (environment variable must be|needs to be set to one of the device id)'
)
threads=8
wants_egl=1
progress_line='# episodes completed so far: (\d+)'
source "${0%session.sh}../../lib/session.sh"
session::prepare "$@"
variables+=(
  CUDA_VISIBLE_DEVICES="$COMBORUN_GPUS"
  MUJOCO_EGL_DEVICE_ID="$COMBORUN_EGL_DEVICE"
)
command=(
  python
  experiments/robot/libero/run_libero_eval.py
  --model_family openvla
  --pretrained_checkpoint openvla/openvla-7b-finetuned-libero-spatial
  --task_suite_name libero_spatial
  --center_crop True
  --num_trials_per_task 50
  --run_id_note libero_spatial_openvla
  --local_log_dir "$COMBORUN_OUTPUT_DIR"
  --seed 7
  --use_wandb False
)
session::run
