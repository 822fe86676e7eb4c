# shellcheck shell=bash
# shellcheck source-path=SCRIPTDIR/..
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# slurm_session.sh: what differs for a session that runs as a task of Slurm. To be sourced by session.sh when it is told
# `slurm` for a multiplexer; what it defines again replaces what works on one machine only. No lock: a claim is made by a
# link, whole or not at all. No window, no FIFO. Every start has a nonce, and a folder for its output with that name.

source "$session_library/attempt/evidence.sh"
source "$session_library/attempt/tail.sh"
source "$session_library/slurm/slurm_life.sh"

slurm_session::open() { # who we are, before anything is exported
  slurm_node=${SLURMD_NODENAME:-$HOSTNAME}
  slurm_id=${SLURM_ARRAY_JOB_ID:+${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID-}}
  slurm_id=${slurm_id:-${SLURM_JOB_ID-}}
  [[ $slurm_id =~ ^[0-9]+(_[0-9]+)?$ ]] || session::die 64 'it is no task of Slurm'
  slurm_restart=${SLURM_RESTART_COUNT:-0}
  [[ $slurm_restart =~ ^[0-9]{1,9}$ ]] || slurm_restart=0
  if [[ $session_role == command ]]; then # setup has a bash of its own
    record::read "$session_at/claim"
    session_nonce=${record[nonce]-}
  else
    read -r session_nonce </proc/sys/kernel/random/uuid
    session_nonce=${session_nonce//-/}
    mkdir -p -- "$session_at" || session::die 73 "can't make $session_at" # a display writes there; the claim makes it count
    trap slurm_session::limit USR1
  fi
  [[ $session_nonce =~ ^[0-9a-f]{32}$ ]] || session::die 73 'its claim has no nonce'
  end_facts=("nonce=$session_nonce" "job=$slurm_id" "node=$slurm_node")
  session_out=out-$session_nonce
}

session::granted() { # -> record: the GPUs of the allocation, and the tail that earlier attempts have left to do
  local first count gpus=''
  if [[ $session_role == command ]]; then
    record::read "$session_at/grant"
    return
  fi
  tail::range "$name"
  [[ ! ${SLURM_JOB_GPUS-} ]] || gpus=${CUDA_VISIBLE_DEVICES-}
  [[ $gpus =~ ^[0-9]+(,[0-9]+)*$ ]] || gpus='' # by name: they stay in CUDA_VISIBLE_DEVICES as Slurm has put them there
  record=([gpus]=$gpus [first]=$first [count]=$count)
  slurm_grant=("gpus=$gpus" "slurm_gpus=${SLURM_JOB_GPUS-}" "node=$slurm_node")
  [[ ! $first ]] || slurm_grant+=("first=$first" "count=$count")
}

session::claim() { # by a link, so that it is whole at once; an attempt is made once, on whichever node
  local draft=$session_at/.claim.$session_nonce claim=()
  slurm_session::said
  session::facts
  claim+=("job=$slurm_id" "restart=$slurm_restart" "node=$slurm_node" "nonce=$session_nonce" "said=$slurm_said")
  printf '%s\n' "${claim[@]}" 2>/dev/null >"$draft" || session::die 73 "can't write in $session_at: is the disk full?"
  slurm_close::publish "$draft" "$session_at/claim" || session::die 76 "attempt $session_attempt has been made"
  slurm_session::make_room || slurm_session::cannot_write
}

slurm_session::make_room() {
  mkdir -- "$session_at/$session_out" && ln -sT -- "$session_out" "$session_at/out" && end::reserve "$session_at" &&
    : >>"$session_at/log" && record::write "$session_at/grant" "${slurm_grant[@]}"
}

slurm_session::cannot_write() { # it has claimed, and can't begin
  slurm_close::attempt "$name" "$session_attempt" disk_full "can't write in $session_at"
  session::die 73 "can't write in $session_at: is the disk full?"
}

slurm_session::said() { # -> slurm_said: bytes in the task's output that are of earlier starts
  slurm_said=$(stat -c %s -- "$run/slurm/out/$slurm_id" 2>/dev/null)
  [[ $slurm_said =~ ^[0-9]+$ ]] || slurm_said=0
}

supervise::follow() { follower=''; } # nobody looks at a task's output

supervise::forward() { # <signal> <why> : Slurm waits 30 seconds before it kills, supervisor and all
  interrupted=$2
  [[ $pid ]] || return 0
  kill "-$1" -- "-$pid" 2>/dev/null || kill "-$1" "$pid" 2>/dev/null
  [[ $1 != TERM ]] || slurm_session::hurry &
}

slurm_session::hurry() { # what does not end on TERM is killed, so that there is time left for the evidence
  trap '' TERM INT
  sleep "${COMBORUN_STOP_TERM_S:-10}"
  watch::supervised && kill -KILL -- "-$pid" 2>/dev/null
}

slurm_session::limit() { # Slurm's limit is near: USR1, a minute ahead. No record::write here: in a trap a bare `return`
  # gives the status of what ran before it
  [[ $pid ]] && printf '%s\n' 'cause=timed_out' "note=Slurm's time limit" >"$session_at/.verdict" || return 0
  kill -INT -- "-$pid" 2>/dev/null || kill -INT "$pid" 2>/dev/null
  {
    trap '' INT
    sleep "${COMBORUN_STOP_INT_S:-15}"
    watch::supervised && kill -TERM -- "-$pid" 2>/dev/null
    slurm_session::hurry
  } &
}

slurm_session::cause() { # -> cause note grace, in Slurm's words
  [[ ! -e $session_at/.verdict && ! -e $session_at/stop ]] || return 0
  [[ $interrupted || $cause == signal ]] || return 0
  [[ ! $interrupted ]] || grace=0
  slurm_words::find "$run/slurm/out/$slurm_id" "$slurm_said" || return 0
}

end::publish() { # <draft> <end> : unless it was closed meanwhile; the end of another start is none
  slurm_close::foreign "${2%/*}"
  slurm_close::publish "$1" "$2"
}

slurm_session::beat() {                                 # in the watch, every few seconds: tell that it lives, hear that it shall end
  local file listed=("$session_at"/e* "$session_at"/s*) # the folder is listed, whatever the node remembers of it
  printf '%s\n' "${EPOCHREALTIME-}" >"$session_at/beat"
  for file in "${listed[@]}"; do
    case ${file##*/} in
      end) slurm_session::ended && kill -KILL -- "-$pid" ;; # closed from elsewhere: what it still writes counts for nothing
      stop) slurm_session::stop ;;
    esac
  done 2>/dev/null
}

slurm_session::ended() { # -> record: whether the end that is there is that of this start
  record::read "$session_at/end" && [[ ${record[nonce]-} == "$session_nonce" ]]
}

slurm_session::stop() { # stop.sh signals through Slurm; where that doesn't answer, we hear of it here
  slurm_stops=$((${slurm_stops:-0} + 1))
  case $slurm_stops in
    1) ;;
    2) kill -INT -- "-$pid" ;;
    4) kill -TERM -- "-$pid" ;;
    6) kill -KILL -- "-$pid" ;;
  esac
}

slurm_session::leave() { # its end is on record: another attempt, if it calls for one; the end of the run, if it is the last
  local outcome
  [[ ! $interrupted ]] && slurm_session::ended || return 0
  attempt::outcome
  [[ $outcome == @(partial|failed|lost) ]] || slurm_session::is_last || return 0
  exec bash "$session_library/slurm_settle.sh" "$run"
}

slurm_session::is_last() { # whether all others have an end: the settle job may wait for a task that never starts again
  local other others=() attempt i
  [[ ${SLURM_ARRAY_JOB_ID-} ]] || return
  while IFS=$'\t' read -r other _; do others+=("$other"); done 2>/dev/null <"$run/dispatch/queue.tsv"
  for ((i = ${#others[@]} - 1; i >= 0; i--)); do # those that come last tell soonest
    attempt::latest "${others[i]}"
    [[ -e $run/sessions/${others[i]}/attempt-$attempt/end ]] || return
  done
}

slurm_session::open
