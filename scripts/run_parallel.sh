#!/usr/bin/env bash
# The front door: sets itself up, then runs a grid to its report (the same as `combo run`).
#
#   ./scripts/run_parallel.sh                          the example: a quadruped, two policies on four terrains
#   ./scripts/run_parallel.sh GRID [option]...         your grid
#   ./scripts/run_parallel.sh --help                   every option
set -euo pipefail

here=$0
while [ -L "$here" ]; do # a link to this script may stand anywhere
  target=$(readlink "$here")
  case $target in
    /*) here=$target ;;
    *) here=$(dirname "$here")/$target ;;
  esac
done
checkout=$(cd -- "$(dirname "$here")/.." && pwd -P)
# shellcheck source=scripts/environment.sh
. "$checkout/scripts/environment.sh"

needs_here() { # whether the sessions run on this machine, which then needs a multiplexer
  local argument
  for argument in "$@"; do
    case $argument in --host | --host=* | -h | --help) return 1 ;; esac
  done
}

if needs_here "$@"; then
  case " $* " in
    *" --multiplexer screen "* | *" --multiplexer=screen "*) environment::packages screen=screen ;;
    *" --multiplexer tmux "* | *" --multiplexer=tmux "*) environment::packages tmux=tmux ;;
    *) command -v screen >/dev/null || environment::packages tmux=tmux ;;
  esac
fi
environment::venv example
export COMBORUN_GRID="${COMBORUN_GRID:-$checkout/examples/quadruped/grid.yaml}"
exec "$venv/bin/combo" run "$@"
