# shellcheck shell=bash
# shellcheck source-path=SCRIPTDIR
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# session.sh: one attempt of one session, from its claim to its end. Sourced by a generated script, which holds the data
# (docs/architecture.md).
#
#   bash session.sh ATTEMPT     0: the end is on record, whatever it is    64: usage    73: can't write here
#                               75: an earlier attempt still lives         76: this attempt has been made
#
# The dispatcher gives it a window and a role besides: `ahead` (ahead.sh), `command` (command.sh) or `orphan` (orphan.sh).
set -uo pipefail

session_library=${BASH_SOURCE[0]%/*}
source "$session_library/base/record.sh"
source "$session_library/attempt/evidence.sh"
source "$session_library/attempt/attempt.sh"
source "$session_library/attempt/end.sh"
source "$session_library/session/pressure.sh"
source "$session_library/base/marker.sh"
source "$session_library/base/multiplexer.sh"
source "$session_library/queue/ahead.sh"
source "$session_library/base/secrets.sh"
source "$session_library/session/pin.sh"
source "$session_library/session/cores.sh"
source "$session_library/session/command.sh"
source "$session_library/watch/watch.sh"
source "$session_library/session/supervise.sh"

session::die() { # <code> <message> : it never began; the dispatcher hears of it, and decides
  printf 'session: %s\n' "$2" >&2
  (($1 == 76)) || session::tell refused "$1"
  exit "$1"
}

session::tell() { # <what> [word] : the dispatcher, if there is one; <> never waits for a reader
  [[ -p ${run-}/dispatch/fifo ]] && printf '%s %s %s %s\n' "$1" "$name" "$session_attempt" "${2-}" 1<>"$run/dispatch/fifo"
}

session::prepare() { # <attempt> [multiplexer] [role] [FIFO] : everything that the command line may name
  session_attempt=${1-} session_mux=${2:-none} session_role=${3:-supervisor}
  [[ $session_attempt =~ ^[1-9][0-9]*$ ]] || session::die 64 'usage: bash session.sh ATTEMPT'
  session_script=${BASH_SOURCE[1]}
  [[ $session_script == /* ]] || session_script=$(cd -- "$(dirname -- "$session_script")" && pwd)/session.sh
  session_directory=${session_script%/*}
  run=${session_directory%/*/*} # below sessions/, or servers/
  session_at=$session_directory/attempt-$session_attempt
  read -r run_id 2>/dev/null <"$run/id" || session::die 66 "$run is no run directory"
  session_marker=$run_id/$name/$session_attempt
  [[ $session_role == ahead ]] && ahead::wait "${4-}"
  [[ $session_mux != slurm ]] || source "$session_library/slurm/slurm_session.sh"
  session::granted
  session::range "${record[first]-}" "${record[count]-}"
  local uuids=${record[uuids]-}
  session_await=${record[await]-}
  pin::grant "${record[gpus]-}" "$uuids"
  cores::grant "${record[cores]-}"
  session::export
  if [[ ${ranks-}${file_names+1}${link_from-}${container-} ]]; then
    source "$session_library/session/around.sh"
    around::prepare
  fi
  if [[ ${servers+set} ]]; then
    source "$session_library/servers/served.sh"
    served::export
  fi
  [[ ${display-}${wants_port-}${wants_egl-} ]] || return 0
  source "$session_library/session/furnish.sh"
  [[ $session_role == @(command|orphan) ]] || furnish::all "$uuids"
}

session::granted() { # -> record: what it was given by whoever starts it
  record::read "$session_at/grant"
}

session::range() { # <first> <count> : the part of its episodes that this attempt has to make, when it is told one
  [[ ${ranged-} == 1 && $1 =~ ^[0-9]{1,15}$ && $2 =~ ^[1-9][0-9]{0,14}$ ]] || return 0
  first=$((10#$1)) count=$2
}

session::export() {
  export COMBORUN_RUN=$run_id COMBORUN_RUN_DIR=$run COMBORUN_RESULTS_DIR=$run/results
  export COMBORUN_OUTPUT_DIR=$session_at/${session_out:-out} COMBORUN_ATTEMPT=$session_attempt
  export COMBORUN_EPISODES=$count COMBORUN_FIRST_EPISODE=$first COMBORUN_LAST_EPISODE=$((first + count - 1))
  export COMBORUN_END_EPISODE=$((first + count))
}

session::run() {
  [[ $session_role == command ]] && command::set_up
  [[ $session_role == orphan ]] && source "$session_library/session/orphan.sh" && orphan::watch
  local pid='' pid_start='' code='' interrupted='' now started follower='' watcher='' began_s group_kills host_kills
  trap '' HUP QUIT TSTP
  trap 'supervise::forward INT "interrupted in its window"' INT
  trap 'supervise::forward TERM "its supervisor was told to end"' TERM
  session::claim
  record::now
  started=$now
  trap : QUIT # what its parent ignores bash 5.3 does not reset in a background child
  command::become </dev/null >>"$session_at/log" 2>&1 &
  pid=$!
  trap '' QUIT
  session::begin
  supervise::follow
  watch::start
  supervise::await
  supervise::end
  wait "$follower" 2>/dev/null # ends with the command, once it has shown the last lines
  [[ $session_mux != slurm ]] || slurm_session::leave
  exit 0
}

session::lock() { # and a folder with room for the end; all that can be done before there is a slot
  [[ -e $session_at/claim ]] && session::die 76 "attempt $session_attempt has been made"
  [[ -d $session_at/out ]] || mkdir -p -- "$session_at/out" || session::die 73 "can't make $session_at/out"
  { exec 9>>"$session_directory/lock"; } 2>/dev/null || session::die 73 "can't write in $session_directory"
  flock -w "${COMBORUN_LOCK_S:-10}" 9 || session::clear || session::die 75 "an earlier attempt of $name still holds the lock"
  end::reserve "$session_at" || session::die 73 "can't write in $session_at: is the disk full?"
}

session::clear() { # what earlier attempts have left behind, when they have ended; then the lock is free
  local number=$((session_attempt - 1)) pids
  [[ -e $session_directory/attempt-$number/end ]] || return
  marker::sweep "$run_id/$name/" 0 5
  flock -w 2 9
}

session::claim() { # under the lock: an attempt is made once
  local claim
  [[ $session_role == ahead ]] || session::lock
  set -o noclobber
  { : >"$session_at/claim"; } 2>/dev/null || session::die 76 "attempt $session_attempt has been made"
  set +o noclobber
  session::facts
  printf '%s\n' "${claim[@]}" 2>/dev/null >"$session_at/claim" && : >>"$session_at/log" && return
  rm -f -- "$session_at/claim"
  session::die 73 "can't write in $session_at: is the disk full?"
}

session::facts() { # -> claim: who makes it, and the rules by which it is judged
  local start state boot uptime line=${evidence_line-}
  process::look $$
  process::boot
  pressure::kills
  process::uptime && began_s=${uptime%??}
  claim=("supervisor=$$" "supervisor_start=$start" "boot=$boot" "count=$count" "success=${success-}"
    "first=$first" "episode=${episode-}" "ranged=${ranged:-0}" "line=${line//'{episodes}'/$count}"
    "log=${results_log:-0}" "records=${evidence_records:-1}" ${evidence_results:+"some=$evidence_results"} "kills=$group_kills,$host_kills" "${results[@]/#/results=}" "${videos[@]/#/video=}"
    "${evidence_files[@]/#/file=}")
}

session::begin() {
  local state start boot mux_name address='' supervisor_start
  process::boot
  process::look $$
  supervisor_start=$start
  process::look "$pid" && pid_start=$start
  mux::name "$name" "$session_attempt"
  case $session_mux in
    tmux) address=$mux_name ;;
    screen) address=${STY-} ;;
    slurm) address=$slurm_id ;;
  esac
  record::write "$session_at/begin" "attempt=$session_attempt" "started=$started" \
    "supervisor=$$" "supervisor_start=$supervisor_start" "pid=$pid" "pid_start=$pid_start" "boot=$boot" \
    "host=${slurm_node:-$HOSTNAME}" "multiplexer=$session_mux" "address=$address" ${SCREENDIR:+"screendir=$SCREENDIR"} \
    "gpus=$session_gpus" "first=$first" "count=$count" ${session_cores:+"cores=$session_cores"} \
    ${COMBORUN_PORT:+"port=$COMBORUN_PORT"} ${COMBORUN_DISPLAY:+"display=$COMBORUN_DISPLAY"} \
    ${egl_told:+"egl=$COMBORUN_EGL_DEVICE" "egl_told=$egl_told"}
}
