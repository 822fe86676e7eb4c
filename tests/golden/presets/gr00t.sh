#!/usr/bin/env bash
# libero_sim-pick_up_the_black_bowl_base: policy base in environment libero_sim/pick_up_the_black_bowl, episodes 0 to 49
name=libero_sim-pick_up_the_black_bowl_base
unit=episode
first=0
count=50
workdir="$HOME"/Isaac-GR00T
results=()
success='"success" *: *(true|1(\.0*)?|" *[Tt][Rr][Uu][Ee] *") *[,}]'
results_log=1
variables=(
  PYTHONUNBUFFERED=1
)
setup() {
source .venv/bin/activate
}
evidence_line='success rate:[[:space:]]+[0-9.]+'
stall_s=1800
threads=8
wants_egl=1
progress_line='Episodes:.*?(\d+)/(\d+) \['
source "${0%session.sh}../../lib/session.sh"
session::prepare "$@"
variables+=(
  CUDA_VISIBLE_DEVICES="$COMBORUN_GPUS"
  MUJOCO_EGL_DEVICE_ID="$COMBORUN_EGL_DEVICE"
)
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
session::run
