#!/usr/bin/env bash
# stairs_flat: policy flat in environment stairs, episodes 0 to 99
name=stairs_flat
unit=episode
first=0
count=100
workdir="$HOME"/IsaacLab
results=('*_episodes.jsonl')
success='"completion" *: *(true|1(\.0*)?|" *[Tt][Rr][Uu][Ee] *") *[,}]'
variables=(
  OMNI_KIT_ACCEPT_EULA=YES
)
setup() {
source ~/miniconda3/etc/profile.d/conda.sh
conda activate env_isaaclab
}
source "${0%session.sh}../../lib/session.sh"
session::prepare "$@"
command=(
  ./isaaclab.sh
  -p "$HOME"/4_env_test/src/run_capstone_eval.py
  --headless
  --num_episodes "$COMBORUN_EPISODES"
  --policy flat
  --env stairs
  --checkpoint "$HOME"/ckpt/flat.pt
  --output_dir "$COMBORUN_OUTPUT_DIR"
)
session::run
