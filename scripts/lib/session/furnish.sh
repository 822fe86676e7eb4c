# shellcheck shell=bash
# shellcheck source-path=SCRIPTDIR
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# furnish.sh: what only some sessions ask for: an EGL device's number, a port, a display. To be sourced by session.sh.
# It is found out once, by the supervisor; the command has it in its environment. `refusal` is why one can't be had:
# the command's process gives it as the reason for a failed launch.

source "${BASH_SOURCE[0]%/*}/egl.sh"
source "${BASH_SOURCE[0]%/*}/port.sh"
source "${BASH_SOURCE[0]%/*}/display.sh"

furnish::all() { # <uuids of the granted GPUs> : reads wants_egl wants_port display, of the script
  local port
  unset COMBORUN_PORT COMBORUN_DISPLAY COMBORUN_EGL_DEVICE # those of a session in which this run was started
  [[ ! ${wants_egl-} ]] || egl::ask "$session_gpus" "$1"
  if [[ ${wants_port-} ]]; then
    port::take || refusal='no port is free'
    export COMBORUN_PORT=$port
  fi
  [[ ! ${display-} ]] || display::open || export COMBORUN_DISPLAY='' # the command line may name it before it is refused
}
