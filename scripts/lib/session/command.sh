# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# command.sh: become the session's command: variables, folder, setup, program. To be sourced by session.sh.
# Runs in the command's own process. What fails before the program runs is a failed launch: one line in `.failure`.

command::become() { # -> never returns; setsid makes this process the leader of its own session and group
  trap - HUP INT QUIT TERM TSTP
  export "COMBORUN_SESSION=$session_marker"
  unset TMUX TMUX_PANE STY WINDOW
  [[ ! ${refusal-} ]] || command::refuse 78 "$refusal"
  cores::bind
  if declare -F setup >/dev/null && [[ ! ${container-} ]]; then
    exec setsid bash "$session_script" "$session_attempt" "$session_mux" command
  fi
  command::enter
  [[ ! ${container-} ]] || container::wrap
  command::check "${command[0]}"
  exec setsid "${command[@]}"
}

command::set_up() { # the same in a fresh bash, which runs the user's own lines first
  local words=("${command[@]}")
  command::enter
  trap 'command::refuse 78 "setup ended the shell with code $?"' EXIT
  set +u +o pipefail
  setup || command::refuse 78 "setup returned $?"
  trap - EXIT
  command::check "${words[0]}"
  shopt -s execfail
  # shellcheck disable=SC2093 # with execfail it comes back when it fails
  exec -- "${words[@]}"
  command::refuse $? "${words[0]} can't be run"
}

command::enter() { # variables and folder
  export PYTHONUNBUFFERED=1
  pin::export
  cores::export
  if [[ ${variables+set} && ${container-} != docker ]]; then
    export -- "${variables[@]}"
  fi
  local note
  secrets::export || command::refuse 78 "$note"
  ! declare -F around::enter >/dev/null || around::enter
  [[ ${workdir-} && (! ${container-} || ${link_from-}) ]] || return 0
  cd -- "$workdir" || command::refuse 78 "there is no folder $workdir"
}

command::check() { # <program> : can it be run from here?
  local program=$1 line='' interpreter
  if [[ $program != */* ]]; then
    command::locate "$1" || command::refuse 127 "there is no program $1 on the PATH"
  fi
  [[ -e $program ]] || command::refuse 127 "there is no program $1"
  [[ -f $program && -x $program ]] || command::refuse 126 "$1 is not executable"
  IFS= read -r -n 2 line 2>/dev/null <"$program"
  [[ $line == '#!' ]] || return 0
  IFS= read -r -n 256 line <"$program"
  read -r interpreter _ <<<"${line#??}"
  [[ -x $interpreter ]] || command::refuse 126 "$1 wants the interpreter ${interpreter@Q}, which is not there"
}

command::locate() { # <name> -> program : as `type -P` does, without a process
  local directory directories
  IFS=: read -ra directories <<<"$PATH:"
  for directory in "${directories[@]}"; do
    program=${directory:-.}/$1
    [[ -f $program && -x $program ]] && return
  done
  return 1
}

command::refuse() { # <code> <note>
  trap - EXIT
  printf '%s\n' "$2" >"$session_at/.failure"
  printf 'comborun: %s\n' "$2" >&2
  exit "$1"
}
