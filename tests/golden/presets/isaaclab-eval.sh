#!/usr/bin/env bash
# friction_flat: policy flat in environment friction, episodes 0 to 99
name=friction_flat
unit=episode
first=0
count=100
workdir="$HOME"/IsaacLab
results=('*_episodes.jsonl')
success='"completion" *: *(true|1(\.0*)?|" *[Tt][Rr][Uu][Ee] *") *[,}]'
variables=(
  OMNI_KIT_ACCEPT_EULA=YES
  PYTHONUNBUFFERED=1
)
setup() {
source ~/miniconda3/etc/profile.d/conda.sh
conda activate env_isaaclab
}
evidence_line='Evaluation complete!'
hang_s=120
stall_s=2700
threads=4
progress_line='^\s*\[\s*(\d+)/(\d+)\]\s+\S+\s+(?:COMPLETE|FLIP|FELL|TIMEOUT)\s'
source "${0%session.sh}../../lib/session.sh"
session::prepare "$@"
command=(
  ./isaaclab.sh
  -p "$HOME"/4_env_test/src/run_capstone_eval.py
  --headless
  --robot spot
  --env friction
  --policy flat
  --num_episodes "$COMBORUN_EPISODES"
  --checkpoint "$HOME"/checkpoints/flat.pt
  --output_dir "$COMBORUN_OUTPUT_DIR"
)
session::run
