#!/usr/bin/env bash
# alfred-base_qwen: policy qwen in environment alfred-base, episodes as the program decides
name=alfred-base_qwen
unit=episode
first=0
count=0
results=('work/running/**/results/episode_*_res.json')
success='"task_success" *: *(true|1(\.0*)?|" *[Tt][Rr][Uu][Ee] *") *[,}]'
variables=(
  PYTHONUNBUFFERED=1
  HYDRA_FULL_ERROR=1
)
setup() {
source ~/miniconda3/etc/profile.d/conda.sh
conda activate embench
}
evidence_records=0
evidence_line='Evaluation completed'
evidence_files=('work/running/**/results/episode_*_res.json')
stall_s=1200
signatures=(
  'server_lost Connection error'
  'launch_failed could not connect to display'
  'launch_failed Cannot open display'
  'launch_failed Could not load the Qt platform plugin'
)
threads=16
display=:1
progress_line='Evaluating episode (\d+) '
link_from="$HOME"/EmbodiedBench
link_exclude=(data running)
source "${0%session.sh}../../lib/session.sh"
session::prepare "$@"
command=(
  env
  remote_url=http://127.0.0.1:8000/v1
  python
  -m embodiedbench.main env=eb-alf model_name=Qwen/Qwen2.5-VL-7B-Instruct model_type=remote exp_name=alfred-base_qwen 'eval_sets=[base]' down_sample_ratio=1.0 n_shots=10
)
session::run
