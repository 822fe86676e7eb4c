#!/usr/bin/env bash
# pick_and_place_zero: policy zero in environment pick_and_place, episodes 0 to 49
name=pick_and_place_zero
unit=episode
first=0
count=50
workdir="$HOME"/IsaacLab-Arena
results=()
success='"success_rate" *: *(true|1(\.0*)?|" *[Tt][Rr][Uu][Ee] *") *[,}]'
results_log=1
variables=(
  OMNI_KIT_ACCEPT_EULA=YES
  PYTHONUNBUFFERED=1
  ISAACLAB_ARENA_FORCE_EXIT_ON_COMPLETE=1
)
setup() {
source ~/miniconda3/etc/profile.d/conda.sh
conda activate env_isaaclab
}
evidence_line='\[Rank 0/[0-9]+\] Metrics:'
stall_s=2700
threads=4
progress_line='Episodes:.*?(\d+)/(\d+) \['
ranks=2
source "${0%session.sh}../../lib/session.sh"
session::prepare "$@"
command=(
  python
  -m torch.distributed.run
  --standalone
  --nproc_per_node="$COMBORUN_GPU_COUNT"
  --log_dir="$COMBORUN_OUTPUT_DIR"/ranks
  --tee=3 isaaclab_arena/evaluation/policy_runner.py
  --policy_type zero_action
  --num_episodes "$COMBORUN_EPISODES_PER_RANK"
  --num_envs 1
  --distributed
  --headless
  --output_base_dir "$COMBORUN_OUTPUT_DIR" pick_and_place
)
session::run
