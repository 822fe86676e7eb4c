#!/usr/bin/env bash
# libero_spatial_pi0: policy pi0 in environment libero_spatial, episodes 0 to 499
name=libero_spatial_pi0
unit=episode
first=0
count=500
workdir="$HOME"/openpi
results=()
success='"success" *: *(true|1(\.0*)?|" *[Tt][Rr][Uu][Ee] *") *[,}]'
results_log=1
variables=(
  PYTHONUNBUFFERED=1
  MUJOCO_GL=egl
)
setup() {
source examples/libero/.venv/bin/activate
export PYTHONPATH=$PWD/third_party/libero
}
evidence_line='Total episodes: {episodes}$'
stall_s=1200
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
  examples/libero/main.py
  --args.host 127.0.0.1
  --args.port 8000
  --args.task-suite-name libero_spatial
  --args.num-trials-per-task 50
  --args.seed 7
  --args.video-out-path "$COMBORUN_OUTPUT_DIR"/videos
)
session::run
