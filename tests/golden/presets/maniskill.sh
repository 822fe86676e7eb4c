#!/usr/bin/env bash
# PickCube-v1_early: policy early in environment PickCube-v1, episodes 0 to 15
name=PickCube-v1_early
unit=episode
first=0
count=16
workdir="$HOME"/ManiSkill/examples/baselines/ppo
results=()
success='"success_once" *: *(true|1(\.0*)?|" *[Tt][Rr][Uu][Ee] *") *[,}]'
results_log=1
variables=(
  PYTHONUNBUFFERED=1
)
setup() {
source ~/miniconda3/etc/profile.d/conda.sh
conda activate maniskill
}
evidence_line=eval_success_once_mean=
stall_s=1800
threads=8
source "${0%session.sh}../../lib/session.sh"
session::prepare "$@"
command=(
  python
  ppo.py
  --evaluate
  --checkpoint "$HOME"/checkpoints/early.pt
  --env_id PickCube-v1
  --num_eval_envs "$COMBORUN_EPISODES"
  --num_eval_steps 50
  --seed 1
  --exp_name PickCube-v1_early
)
session::run
