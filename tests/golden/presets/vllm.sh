#!/usr/bin/env bash
# it: a model server, until no session is left that asks it
name=it
unit=step
first=0
count=0
results=()
wants_port=1
ready=('http 200 /health' 'http 200 /v1/models Qwen/Qwen2.5-VL-7B-Instruct')
ready_within_s=0
health_s=10
health_misses=6
source "${0%session.sh}../../lib/session.sh"
session::prepare "$@"
command=(
  vllm
  serve
  Qwen/Qwen2.5-VL-7B-Instruct
  --host 127.0.0.1
  --port "$COMBORUN_PORT"
  --served-model-name Qwen/Qwen2.5-VL-7B-Instruct
  --tensor-parallel-size "$COMBORUN_GPU_COUNT"
  --gpu-memory-utilization 0.5
  --max-model-len 8192
)
session::run
