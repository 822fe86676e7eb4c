# shellcheck shell=bash
# shellcheck source-path=SCRIPTDIR/..
# shellcheck disable=SC2030,SC2031,SC2034,SC2154 # values are handed on through variables that the callers name
# watch.sh: see to it that a command which makes no progress is noticed and, where limits are set, ended. To be sourced by
# session.sh. The watch is a child of the supervisor that reads from a pipe of it: it leaves with its supervisor, however
# that goes. Time is what the watch itself lived through: a clock that is set or a machine that slept is no silence.

watch::start() { # -> watcher; the slot does not wait for it, and a short command never meets it
  exec {watch_pipe}> >(watch::main)
  watcher=$!
}

watch::end() { # -> peak_memory_kib; at once, so that it judges nothing that has ended
  kill -KILL "$watcher" 2>/dev/null
  exec {watch_pipe}>&-
  read -r peak_memory_kib 2>/dev/null <"$session_at/.watch"
}

watch::clear() { # what is about a command that runs
  local file left=()
  for file in "$session_at"/{.watch,.verdict,stalled}; do [[ -e $file ]] && left+=("$file"); done
  ((${#left[@]} == 0)) || rm -f -- "${left[@]}"
}

watch::main() { # looks every few seconds until the supervisor is gone
  trap '' HUP INT QUIT TERM TSTP
  exec 9>&- >/dev/null 2>&1
  local poll_ms hang_ms=$((${hang_s:-120} * 1000)) stall_ms=$((${stall_s:-0} * 1000)) max_ms=$((${max_s:-0} * 1000))
  local tell_ms=$((${COMBORUN_STALLED_S:-1200} * 1000)) awake_ms=0 silent_ms=0 quiet_ms=0 unheard_ms=0 looks=0
  local results_found=0 worked=0 whole='' peak=0 told='' uptime last_uptime
  watch::milliseconds "${COMBORUN_WATCH_S:-5}"
  process::uptime || return
  last_uptime=$uptime
  watch::pause $((poll_ms < 1000 ? poll_ms : 1000)) # what is done in a second needs no watch
  source "$session_library/watch/progress.sh"
  source "$session_library/watch/verdict.sh"
  [[ ! ${session_await-} ]] || source "$session_library/watch/first.sh"
  [[ ! $session_gpus ]] || source "$session_library/watch/seat.sh"
  if [[ ${ready+set} ]]; then
    source "$session_library/servers/serve.sh"
    serve::main
  fi
  while progress::look; do
    [[ $session_role == orphan || -f $session_at/begin ]] || session::begin # there was no room for it
    [[ $session_mux != slurm ]] || slurm_session::beat
    watch::pause "$poll_ms"
  done
  while :; do watch::pause 60000; done # it has been told to end
}

watch::milliseconds() { # <seconds, perhaps with a fraction> -> poll_ms
  local fraction=''
  [[ $1 == *.* ]] && fraction=${1#*.}
  printf -v fraction '%-3.3s' "$fraction"
  poll_ms=$((10#${1%.*}${fraction// /0}))
  ((poll_ms >= 20)) || poll_ms=20
}

watch::pause() { # <milliseconds> : leaves when the supervisor has gone, which closes the pipe
  local seconds
  printf -v seconds '%d.%03d' $(($1 / 1000)) $(($1 % 1000))
  read -r -t "$seconds" _
  (($? > 128)) || exit 0
  [[ $session_role != orphan ]] || orphan::goes_on || exit 0
}

watch::supervised() { # 1 when the command has ended; a supervisor that somebody has stopped goes on, to write that down
  local state start
  process::look "$pid" && [[ $start == "$pid_start" && $state != [ZX] ]] && return
  process::look "$$" && [[ $state == T ]] && kill -CONT "$$"
  return 1
}
