#!/usr/bin/env bash
# habitat_cosmos: policy cosmos in environment habitat, episodes 0 to 49
name=habitat_cosmos
unit=episode
first=0
count=50
workdir="$HOME"/EmbodiedBench
results=('**/cosmos_log.json')
success='"task_success" *: *(true|1(\.0*)?|" *[Tt][Rr][Uu][Ee] *") *[,}]'
variables=(
  PYTHONUNBUFFERED=1
)
setup() {
source ~/miniconda3/etc/profile.d/conda.sh
conda activate embench
}
ranged=1
episode=episode
evidence_records=0
evidence_line='EB-[A-Za-z]+ complete\. Logs:'
evidence_files=('**/cosmos_log.json')
stall_s=1800
signatures=(
  'launch_failed could not connect to display'
  'launch_failed Cannot open display'
)
threads=8
progress_line='^Episode (\d+) complete\.'
videos=('**/video.mp4')
source "${0%session.sh}../../lib/session.sh"
session::prepare "$@"
command=(
  python
  cosmos_agent/cosmos_agent.py
  --env habitat
  --model_path "$HOME"/checkpoints/Cosmos-Reason2-8B
  --num_episodes "$COMBORUN_EPISODES"
  --start_episode "$COMBORUN_FIRST_EPISODE"
  --output_dir "$COMBORUN_OUTPUT_DIR"
)
session::run
