# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# display.sh: the X display of a session: one that is there, by the GPU or for all, or an Xvfb of its own. To be sourced
# by session.sh, for sessions that have one.
#
# Xvfb chooses its number itself (-displayfd), so two that start at once never want the same one, and no lock file is
# ever removed. A guard holds it: it reads from a pipe that the supervisor and the command keep open, and when both
# are gone, however they ended, it ends the server.

display::open() { # reads display (xvfb, :N, or 0=:N 1=:N for GPUs) -> COMBORUN_DISPLAY; 1 and `refusal` when there is none
  local number=''
  case $display in
    xvfb) display::serve || return ;;
    :*) number=$display ;;
    *)
      display::of_gpu || {
        refusal="\`display\` names no display for GPU ${session_gpus%%,*}"
        return 1
      }
      ;;
  esac
  export COMBORUN_DISPLAY=$number DISPLAY=$number
}

display::of_gpu() { # -> number: of the first GPU that was granted
  local pair
  for pair in $display; do
    [[ $pair =~ ^([0-9]{1,4})=(:[0-9.]+)$ && ${BASH_REMATCH[1]} == "${session_gpus%%,*}" ]] || continue
    number=${BASH_REMATCH[2]}
    return
  done
  return 1
}

display::serve() { # -> number; 1 and `refusal` when the server doesn't come up
  local word said=''
  if ! type -P Xvfb >/dev/null; then
    refusal="there is no Xvfb on the PATH, which \`display: xvfb\` asks for"
    return 1
  fi
  [[ -d $session_at ]] || mkdir -p -- "$session_at" # by hand, and as a task of Slurm, nobody has made it yet
  coproc display_guard { display::guard; }
  exec {display_held}>"/proc/self/fd/${display_guard[1]}" # the command inherits it; a mere copy would be closed for it
  while IFS= read -r -t "${COMBORUN_DISPLAY_S:-15}" -u "${display_guard[0]}" word; do
    [[ $word =~ ^[0-9]{1,5}$ ]] && number=:$word && return
  done
  display::close
  [[ -s $session_at/xvfb ]] && said=$(grep -av '^$' -- "$session_at/xvfb" | tail -n 1)
  refusal="Xvfb did not come up: ${said:-it says nothing}"
  return 1
}

display::guard() { # its standard input is the pipe; the server writes its number to its standard output
  local server
  trap '' HUP INT QUIT TSTP
  trap - TERM
  exec 9>&-
  (
    cores::bind
    export "COMBORUN_SESSION=$session_marker"
    exec setsid Xvfb -displayfd 1 -screen 0 "${geometry:-1280x1024x24}" -nolisten tcp -noreset </dev/null 2>"$session_at/xvfb"
  ) &
  server=$!
  exec >/dev/null
  read -r _
  kill "$server" 2>/dev/null # the shell has not waited for it, so the number is still its own
  display::gone "$server" || kill -KILL "$server" 2>/dev/null
  wait "$server" 2>/dev/null
}

display::gone() { # <server> : within three seconds
  local i state start
  for ((i = 0; i < 60; i++)); do
    process::look "$1" && [[ $state != [ZX] ]] || return 0
    sleep 0.05
  done
  return 1
}

display::close() { # its server ends with it
  [[ ${display_held-} ]] || return 0
  printf 'end\n' >&"$display_held"
  exec {display_held}>&-
  display_held=''
  wait "${display_guard_PID:-}" 2>/dev/null
}
