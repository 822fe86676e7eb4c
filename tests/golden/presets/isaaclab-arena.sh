#!/usr/bin/env bash
# pick_and_place_zero: policy zero in environment pick_and_place, episodes 0 to 49
name=pick_and_place_zero
unit=episode
first=0
count=50
workdir="$HOME"/IsaacLab-Arena
results=('**/episode_results*.jsonl')
success='"success" *: *(true|1(\.0*)?|" *[Tt][Rr][Uu][Ee] *") *[,}]'
variables=(
  OMNI_KIT_ACCEPT_EULA=YES
  PYTHONUNBUFFERED=1
  ISAACLAB_ARENA_FORCE_EXIT_ON_COMPLETE=1
)
setup() {
source ~/miniconda3/etc/profile.d/conda.sh
conda activate env_isaaclab
}
stall_s=2700
threads=8
progress_line='Episodes:.*?(\d+)/(\d+) \['
file_names=(job.json)
source "${0%session.sh}../../lib/session.sh"
session::prepare "$@"
file_texts=(
  '{
 "jobs": [
  {
   "name": "pick_and_place_zero",
   "arena_env_args": {
    "environment": "pick_and_place",
    "num_envs": 1
   },
   "policy_type": "zero_action",
   "policy_config_dict": {
    "policy_config_yaml_path": null,
    "policy_device": "cuda:0"
   },
   "num_episodes": '"$COMBORUN_EPISODES"',
   "num_rebuilds": 1,
   "status": "pending"
  }
 ]
}
'
)
command=(
  python
  isaaclab_arena/evaluation/eval_runner.py
  --headless
  --eval_jobs_config "$COMBORUN_FILES"/job.json
  --output_base_dir "$COMBORUN_OUTPUT_DIR"
)
session::run
