# shellcheck shell=bash
# shellcheck source-path=SCRIPTDIR/..
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# supervise.sh: what session.sh does while its command runs, and when it has ended. To be sourced by session.sh.

supervise::follow() { # what the window shows; the log itself is written by the command, with no pipe in between
  (
    trap - HUP
    trap '' INT QUIT TSTP
    exec tail -n +1 -f -s 0.1 --pid="$pid" -- "$session_at/log"
  ) 9>&- 2>/dev/null &
  follower=$!
}

supervise::forward() { # <signal> <why>
  interrupted=$2
  [[ $pid ]] || return 0
  kill "-$1" -- "-$pid" 2>/dev/null || kill "-$1" "$pid" 2>/dev/null
}

supervise::await() { # -> code; a signal that is caught ends `wait` early
  local state start
  while :; do
    wait "$pid"
    code=$?
    process::look "$pid" || break
    [[ $start == "$pid_start" && $state != [ZX] ]] || break
  done
  ((code > 128)) && supervise::missed && code='' && return
  wait "$pid" 2>/dev/null
  local again=$?
  ((again == 127)) || code=$again
}

supervise::missed() { # whether bash has reaped the command and doesn't know: a signal that is caught in that very moment,
  # as when Slurm signals both, makes it forget how the command ended, and `wait` would wait for it for ever
  local state start
  process::look "$pid" && [[ $start == "$pid_start" ]] && return 1
  [[ $'\n'$(jobs -rp)$'\n' == *$'\n'"$pid"$'\n'* ]]
}

supervise::end() { # tell that the slot is free before anything else: somebody waits for it
  local now cause=exited note='' pids=() grace=${COMBORUN_GRACE_S:-5} peak_memory_kib='' signature='' behind=0
  record::now
  supervise::end_group
  [[ ! -e $session_at/container ]] || container::end "$session_at"
  session::tell free
  watch::end
  [[ ! ${display_held-} ]] || display::close
  [[ $session_mux == none ]] || kill "$follower" 2>/dev/null
  supervise::cause
  supervise::alone || supervise::sweep
  supervise::judge
  [[ ! -e $session_at/wrong_gpu ]] || supervise::misplaced
  end::write "$session_at" "$started" "$now" "$code" "$cause" "$note" && watch::clear # else who buries it reads the verdict
  session::tell ended
}

supervise::end_group() { # -> behind: what is left of it, unless its number is another's by now
  local state start i
  process::look "$pid" && [[ $start != "$pid_start" ]] && return
  if [[ ! $interrupted && ! -e $session_at/.verdict && ! -e $session_at/stop ]]; then
    for ((i = 0; i < grace * 10; i++)); do # a child may be writing results, or the end of a video
      supervise::group || return 0
      [[ ! -e $session_at/stop ]] || break
      sleep 0.1
    done
    supervise::group && behind=${#pids[@]}
  fi
  kill -KILL -- "-$pid" 2>/dev/null
}

supervise::group() { # -> pids: those of the command's group that live; a zombie that nobody reaps does not
  local candidate fields left=()
  pids=()
  kill -0 -- "-$pid" 2>/dev/null && marker::pids "$session_marker" || return
  for candidate in "${pids[@]}"; do
    process::fields "$candidate" && [[ ${fields[2]} == "$pid" && ${fields[0]} != [ZX] ]] && left+=("$candidate")
  done
  pids=("${left[@]}")
  ((${#pids[@]}))
}

supervise::sweep() { # what left the group; after its grace it is ended
  marker::gone "$session_marker" "$grace" && return
  behind=$((behind + ${#pids[@]}))
  marker::sweep "$session_marker" 0 5 || note+=" processes survive: ${pids[*]}"
}

supervise::alone() { # whether the command left nothing behind, for one that was short enough to tell without a search
  marker::none_since "$session_marker" "$pid" $((${now%.*} - ${started%.*} + 1))
}

supervise::cause() { # -> cause note grace, as far as it was seen from here
  ((code > 128 && code <= 192)) && cause=signal
  [[ -e $session_at/.failure ]] && cause=launch_failed && IFS= read -r note <"$session_at/.failure"
  [[ ! ${container-} || $cause == launch_failed ]] || container::cause "$code"
  [[ $interrupted ]] && cause=stopped note=$interrupted
  [[ -e $session_at/.verdict ]] && record::read "$session_at/.verdict" &&
    cause=${record[cause]-unknown} note=${record[note]-} grace=0
  [[ -e $session_at/stop ]] && cause=stopped note='' grace=0
  [[ $session_mux != slurm ]] || slurm_session::cause
}

supervise::misplaced() { # its memory lay on another GPU than planned (seat.sh)
  record::read "$session_at/wrong_gpu"
  note+="${note:+; }${record[why]-WRONG_GPU}"
}

supervise::judge() { # -> records successes completeness, and why it failed if it did
  local flaws witness=''
  [[ $cause == exited ]] && witness=$code # to save and leave when told to, with 0, is not to have done the work
  end::judge "$session_at" "$witness"
  note+=$flaws
  [[ $completeness == complete || $cause == @(stopped|launch_failed|preempted) ]] && return
  ((behind == 0 || grace == 0)) || note+="${note:+; }processes that it left behind were ended after $grace s: $behind"
  source "$session_library/session/cause.sh"
  cause::refine "$session_at"
}
