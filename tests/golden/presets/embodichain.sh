#!/usr/bin/env bash
# pick_ppo: policy ppo in environment pick, steps 0 to 99999
name=pick_ppo
unit=step
first=0
count=100000
results=()
success='"success" *: *(true|1(\.0*)?|" *[Tt][Rr][Uu][Ee] *") *[,}]'
variables=(
  PYTHONUNBUFFERED=1
  EMBODICHAIN_SIM_EXIT_PROCESS=0
)
setup() {
source ~/miniconda3/etc/profile.d/conda.sh
conda activate embodichain
}
evidence_line='Training finished'
stall_s=3600
threads=8
progress_line='\[train\] step=(\d+)'
ranks=1
link_from="$HOME"/EmbodiChain
link_exclude=(outputs)
source "${0%session.sh}../../lib/session.sh"
session::prepare "$@"
command=(
  python
  -m torch.distributed.run
  --standalone
  --nproc_per_node="$COMBORUN_GPU_COUNT"
  --log_dir="$COMBORUN_OUTPUT_DIR"/ranks
  --tee=3
  -m embodichain train-rl
  --config "$HOME"/configs/pick/ppo.json
  --distributed
)
session::run
