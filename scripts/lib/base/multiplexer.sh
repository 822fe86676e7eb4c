# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# multiplexer.sh: tmux and screen behind one small interface. To be sourced; needs `run` and `run_id`.
# Sessions are for looking at: what a session does is in its files. Names are given whole; nothing here matches a prefix.

mux_socket=${COMBORUN_TMUX_SOCKET:-comborun}

mux::name() { # <session> <attempt> -> mux_name
  mux_name=${1}_${run_id: -4}
  (($2 == 1)) || mux_name+=_a$2
}

mux::choose() { # [wanted] -> multiplexer; 1 when there is none
  local candidate
  for candidate in ${1:-tmux screen}; do
    multiplexer=$candidate
    type -P "$candidate" >/dev/null && return
  done
  return 1
}

mux::prepare() { # <multiplexer> : once, before the first start
  mux_kind=$1
  case $mux_kind in
    tmux) mux::prepare_tmux ;;
    screen) mux::prepare_screen ;;
  esac
}

mux::prepare_tmux() { # exit-empty: a server that ends between two sessions refuses some
  local name names=''
  while read -r name; do # a window gets the environment of its starter, not that of whoever started the server
    [[ $name =~ ^[A-Za-z_][A-Za-z0-9_]*$ && $name != @(_|PWD|OLDPWD|SHLVL|TERM) ]] && names+=" $name"
  done < <(compgen -e)
  mux_conf=$run/dispatch/tmux.conf
  printf '%s\n' 'set -s exit-empty off' 'set -g history-limit 500' "set -ag update-environment \"$names\"" >"$mux_conf"
  mux::quietly tmux -L "$mux_socket" -f "$mux_conf" start-server \; source-file "$mux_conf"
}

mux::prepare_screen() { # a screenrc of our own: the user's may open windows that outlive ours
  mux_conf=$run/dispatch/screenrc
  printf '%s\n' 'startup_message off' 'defscrollback 500' 'zombie' >"$mux_conf"
  mux::usable_screen && return
  export SCREENDIR=${XDG_RUNTIME_DIR:-$HOME}/.comborun-screen
  mkdir -p -- "$SCREENDIR" && chmod 700 -- "$SCREENDIR"
}

mux::usable_screen() { # `screen -ls` says 0 or 1 for "some" or "none", and complains when it has no directory
  local said
  said=$(screen -ls 2>&1)
  [[ $said == *[Ss]ocket* && $said != *"annot make directory"* && $said != *"must have mode"* ]]
}

mux::start() { # <session> <script> <attempt> [FIFO] -> mux_client: a process that ends with 0 when the window is there
  local mux_name words=(bash "$2" "$3" "$mux_kind" ${4:+ahead "$4"})
  mux::name "$1" "$3"
  case $mux_kind in
    tmux) mux::quietly tmux -L "$mux_socket" -f "$mux_conf" new-session -d -s "$mux_name" -- "${words[@]}" ;;
    screen) mux::quietly screen -c "$mux_conf" -dmS "$mux_name" "${words[@]}" ;;
  esac
  mux_client=$!
}

mux::quietly() { # <command>... : in the background, so that a frozen server freezes nobody; inherits no descriptor, and
  # no signal that is ignored: tmux before 3.2 hands an ignored QUIT on to its windows, and no shell there undoes it
  trap : INT QUIT # what its parent ignores bash 5.3 does not reset in a background child
  (
    trap - INT QUIT
    exec "$@"
  ) </dev/null >>"$run/dispatch/out" 2>&1 3>&- 4>&- 8>&- &
  trap '' INT QUIT
}

mux::finish() { # the tmux server ends with its last session, unless another run wants it to stay
  [[ $mux_kind == tmux ]] || return 0
  mux::quietly tmux -L "$mux_socket" set -s exit-empty on
}
