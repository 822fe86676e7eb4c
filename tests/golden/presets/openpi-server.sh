#!/usr/bin/env bash
# it: a model server, until no session is left that asks it
name=it
unit=step
first=0
count=0
workdir="$HOME"/openpi
results=()
variables=(
  PYTHONUNBUFFERED=1
  XLA_PYTHON_CLIENT_MEM_FRACTION=0.4
)
wants_port=1
ready=('http 200 /healthz')
ready_within_s=0
health_s=10
health_misses=6
source "${0%session.sh}../../lib/session.sh"
session::prepare "$@"
command=(
  uv
  run
  python
  -c 'import runpy, sys; from openpi.serving import websocket_policy_server as module; server = module.WebsocketPolicyServer; start = server.__init__; server.__init__ = lambda self, *given, **named: start(self, *given, **{**named, '"'"'host'"'"': '"'"'127.0.0.1'"'"'}); sys.argv[0] = '"'"'scripts/serve_policy.py'"'"'; runpy.run_path(sys.argv[0], run_name='"'"'__main__'"'"')'
  --env LIBERO
  --port "$COMBORUN_PORT" policy:checkpoint
  --policy.config pi05_libero
  --policy.dir "$HOME"/ckpt/pi05
)
session::run
