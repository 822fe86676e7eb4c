#!/usr/bin/env bash
# push_robust: policy robust in environment push, episodes 0 to 99
name=push_robust
unit=episode
first=0
count=100
results=('*.jsonl')
success='"success" *: *(true|1(\.0*)?|" *[Tt][Rr][Uu][Ee] *") *[,}]'
ranged=1
episode='ep idx'
evidence_records=0
evidence_line='it'"'"'s \[saved\]$'
evidence_files=(summary.json 'b *.mp4')
hang_s=0
stall_s=1200
max_s=7200
signatures=(
  'gpu_memory CUDA error: out of memory'
  'ignore tcmalloc'"'"'s large alloc'
)
source "${0%session.sh}../../lib/session.sh"
session::prepare "$@"
command=(
  evaluate
  --first "$COMBORUN_FIRST_EPISODE"
  --episodes "$COMBORUN_EPISODES" "$COMBORUN_OUTPUT_DIR"
)
session::run
