#!/usr/bin/env bash
# it: a model server, until no session is left that asks it
name=it
unit=step
first=0
count=0
workdir="$HOME"/Isaac-GR00T
results=()
variables=(
  PYTHONUNBUFFERED=1
)
wants_port=1
ready=('line Server is ready and listening on' tcp)
ready_within_s=0
health_s=10
health_misses=6
source "${0%session.sh}../../lib/session.sh"
session::prepare "$@"
command=(
  python
  gr00t/eval/run_gr00t_server.py
  --model-path "$HOME"/ckpt/n1
  --embodiment-tag gr1
  --device cuda
  --host 127.0.0.1
  --port "$COMBORUN_PORT"
)
session::run
