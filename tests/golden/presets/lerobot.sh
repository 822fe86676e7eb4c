#!/usr/bin/env bash
# libero_spatial_smolvla: policy smolvla in environment libero_spatial, episodes 0 to 499
name=libero_spatial_smolvla
unit=episode
first=0
count=500
results=(eval_info.json)
success='"success" *: *(true|1(\.0*)?|" *[Tt][Rr][Uu][Ee] *") *[,}]'
variables=(
  PYTHONUNBUFFERED=1
  MUJOCO_GL=egl
)
setup() {
source ~/miniconda3/etc/profile.d/conda.sh
conda activate lerobot
}
evidence_records=0
evidence_files=(eval_info.json)
stall_s=1800
signatures=(
  'launch_failed Do you want to specify a custom path'
  'launch_failed Cannot initialize a EGL device display'
  'launch_failed MUJOCO_EGL_DEVICE_ID (environment variable must be|needs to be set to one of the device id)'
)
threads=4
wants_egl=1
progress_line='Stepping through eval batches:.*?(\d+)/(\d+) \['
source "${0%session.sh}../../lib/session.sh"
session::prepare "$@"
variables+=(
  CUDA_VISIBLE_DEVICES="$COMBORUN_GPUS"
  MUJOCO_EGL_DEVICE_ID="$COMBORUN_EGL_DEVICE"
)
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
session::run
