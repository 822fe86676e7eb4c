# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# verdict.sh: when the watch ends a command, and how. To be sourced by watch.sh. The reason is written down first.

verdict::gives_way() { # the dispatcher says so, since the GPU is full (give_way.sh)
  [[ -e $session_at/give_way ]] || return
  record::read "$session_at/give_way"
  verdict::carry_out gpu_memory "${record[why]-it made room on its GPU}"
}

verdict::overtime() {
  ((max_ms && awake_ms >= max_ms)) || return
  verdict::carry_out timed_out "it ran longer than $((max_ms / 1000)) s"
}

verdict::unserved() { # a model server that it was given is gone: what it still does is worth nothing, whoever answers now
  local why
  [[ ${served_by-} ]] && served::lost || return
  served_lost_ms=$((served_lost_ms + elapsed))
  ((served_lost_ms >= ${COMBORUN_SERVER_GRACE_S:-10} * 1000)) || return # a program that notices it says more
  verdict::carry_out server_lost "$why"
}

verdict::hung() { # nothing happens any more, and all that it had to do is there
  ((hang_ms && quiet_ms * 2 >= hang_ms)) || return
  if [[ ! $whole ]]; then
    local records successes completeness flaws
    end::judge "$session_at" ''
    whole=0
    [[ $completeness == complete ]] && whole=1
  fi
  ((whole && quiet_ms >= hang_ms)) || return
  verdict::carry_out hung "it did not end within $((hang_ms / 1000)) s after its work was done"
}

verdict::stalled() { # first it is told, and ended only where a limit says so
  ((silent_ms >= (stall_ms ? stall_ms : tell_ms))) || return
  if [[ ! $told ]]; then
    ! progress::loops && activity::on_gpu && progress::forgive && return 1
    verdict::why
    record::now
    record::write "$session_at/stalled" "since=$((${now%.*} - silent_ms / 1000))" "why=$cleaned" && told=$cleaned
  fi
  ((stall_ms)) || return
  verdict::carry_out stalled "$told"
}

verdict::why() { # -> cleaned: what makes it look stalled
  local why
  why="no new result, no new line and $((worked * 1000 / silent_ms)) % of a core for $((silent_ms / 1000)) s"
  ((repeated < repetition_often)) && [[ ! $repetition_loop ]] || why="no new result for $((silent_ms / 1000)) s, and the same line at least $repeated times: $repeated_line"
  ((held)) && why+="; $held of its processes are stopped by a signal"
  record::clean "$why"
}

verdict::carry_out() { # <cause> <why> : the command's group, step by step; written down first, so that nothing ends unexplained
  local signal seconds
  [[ -e $session_at/stop ]] && return # somebody does it already
  record::write "$session_at/.verdict" "cause=$1" "note=$2" || return
  for signal in INT TERM KILL; do
    seconds=${COMBORUN_STOP_INT_S:-15}
    [[ $signal == TERM ]] && seconds=${COMBORUN_STOP_TERM_S:-10}
    watch::supervised || return 0
    kill "-$signal" -- "-$pid" 2>/dev/null || kill "-$signal" "$pid" 2>/dev/null
    kill -CONT -- "-$pid" 2>/dev/null # one that was stopped hears nothing else
    verdict::until_ended "$seconds"
  done
}

verdict::until_ended() { # <seconds>
  local i
  for ((i = 0; i < $1 * 10; i++)); do
    watch::supervised || return 0
    watch::pause 100
  done
}
