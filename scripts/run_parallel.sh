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

host_of() { # [argument]... -> where the sessions run, at a glance; nothing when no one says
  local argument previous='' host=''
  for argument in "$@"; do
    case $argument in
      --host=*) host=${argument#--host=} ;;
      *) [ "$previous" != --host ] || host=$argument ;;
    esac
    previous=$argument
  done
  for argument in "$@" "${COMBORUN_GRID:-}"; do # the first file is the grid
    [ -z "$host" ] || break
    [ -f "$argument" ] || continue
    sed -n "s/^host:[[:space:]]*[\"']\{0,1\}\([^\"'#[:space:]]*\).*/\1/p" "$argument"
    return
  done
  printf '%s' "$host"
}

multiplexer() { # [argument]... : installs one, where sessions run here and need it
  local host
  case " $* " in *' -h '* | *' --help '*) return 0 ;; esac
  host=$(host_of "$@")
  [ "${host:-local}" = local ] || return 0
  case " $* " in
    *" --multiplexer screen "* | *" --multiplexer=screen "*) environment::packages screen=screen ;;
    *" --multiplexer tmux "* | *" --multiplexer=tmux "*) environment::packages tmux=tmux ;;
    *) command -v screen >/dev/null || environment::packages tmux=tmux ;;
  esac
}

multiplexer "$@" || environment::say 'comborun: going on all the same: combo asks the machine that the sessions run on'
environment::venv example
export COMBORUN_GRID="${COMBORUN_GRID:-$checkout/examples/quadruped/grid.yaml}"
exec "$venv/bin/combo" run "$@"
