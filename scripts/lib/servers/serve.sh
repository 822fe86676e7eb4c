# shellcheck shell=bash
# shellcheck source-path=SCRIPTDIR
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# serve.sh: what the watch of a model server does instead of judging progress: it tells when the server is ready, asks
# after its health from then on, and ends one that does not answer. To be sourced by watch.sh, in the watch's own process:
# it goes on when the dispatcher has gone.
#
#   servers/<name>/attempt-N/ready       key=value: at url port path; path: what a look at its health asks for, if HTTP
#   servers/<name>/attempt-N/unhealthy   key=value: since misses; while it does not answer
#   servers/<name>/url                   one line; while it is ready

source "${BASH_SOURCE[0]%/*}/ready.sh"

serve::main() { # until the supervisor has gone; -> nothing
  local port log=$session_at/log lacks='' health_path='' misses=0
  record::read "$session_at/begin" # this process may be an orphan's watch, which was given no port
  port=${record[port]:-${COMBORUN_PORT-}}
  rm -f -- "$session_directory/url"
  serve::health_path
  if [[ -e $session_at/ready ]] || serve::await; then # an orphan's watch comes to one that has been ready
    while serve::healthy; do :; done
  fi
  while :; do watch::pause 60000; done
}

serve::await() { # 1 when it ended, or was ended, before it was ready
  local pause_ms=200
  until ready::all "${COMBORUN_ANSWER_S:-5}"; do
    watch::supervised || return
    serve::look
    if ((ready_within_s && awake_ms >= ready_within_s * 1000)); then
      verdict::carry_out timed_out "it was not ready within $ready_within_s s; still missing: ${lacks% *}"
      return 1
    fi
    watch::pause "$pause_ms"
    pause_ms=$((pause_ms < 1600 ? pause_ms * 2 : 2000))
  done
  watch::supervised || return # what answered was another program
  if ! ready::own; then
    verdict::carry_out launch_failed "another program listens on its port $port"
    return 1
  fi
  [[ ! ${warm_up+set} ]] || serve::warm_up || return
  serve::tell
}

serve::warm_up() { # METHOD PATH TYPE SECONDS BODY: one request, so that no client's first one pays for it
  local answer first
  if ready::ask "${warm_up[3]}" "${warm_up[0]}" "${warm_up[1]}" "${warm_up[2]}" "${warm_up[4]}"; then
    first=${answer%%$'\r'*}
    [[ $first == *' 2'[0-9][0-9]* ]] && return
    serve::note "the warm-up request was answered with: ${first::100}"
    return 0
  fi
  watch::supervised || return
  verdict::carry_out timed_out "it did not answer the warm-up request within ${warm_up[3]} s"
  return 1
}

serve::tell() { # that it is ready
  local now url=http://127.0.0.1:$port
  record::now
  record::write "$session_directory/url" "$url"
  record::write "$session_at/ready" "at=$now" "url=$url" "port=$port" "path=$health_path" || return
  session::tell ready
}

serve::health_path() { # -> health_path: of the first check over HTTP; without one it has to take connections
  local check
  for check in "${ready[@]}"; do
    [[ $check == http\ * ]] || continue
    check=${check#http * } health_path=${check%% *}
    return
  done
}

serve::healthy() { # one look; 1 when it ended, or was ended
  local answer now
  ((${health_s:-10})) || watch::pause 5000
  ((${health_s:-10} == 0)) || watch::pause $((${health_s:-10} * 1000))
  watch::supervised || return
  serve::look
  ((${health_s:-10})) || return 0
  if serve::answers; then
    ((misses == 0)) || { rm -f -- "$session_at/unhealthy" && session::tell ready; }
    misses=0
    return
  fi
  misses=$((misses + 1))
  record::now
  ((misses > 1)) || unhealthy_since=$now
  record::write "$session_at/unhealthy" "since=$unhealthy_since" "misses=$misses"
  ((misses < ${health_misses:-6})) && return
  verdict::carry_out stalled "it did not answer ${health_path:-on its port}: $misses looks in a row, ${health_s:-10} s apart"
  return 1
}

serve::answers() { # an error that it answers with is no answer of a healthy server
  if [[ $health_path ]]; then
    ready::ask "${COMBORUN_ANSWER_S:-5}" GET "$health_path" && [[ $answer == 'HTTP/'[0-9.]*' '[23][0-9][0-9]' '* ]]
  else
    ready::ask "${COMBORUN_ANSWER_S:-5}"
  fi
}

serve::look() { # how much memory it takes, and for how long it has been awake
  local elapsed resident_kib ticks held
  progress::elapse
  awake_ms=$((awake_ms + elapsed)) looks=$((looks + 1))
  progress::processes
  printf '%s\n' "$peak" 2>/dev/null >"$session_at/.watch"
}

serve::note() { # <text> : into its log, which belongs to the server
  printf 'comborun: %s\n' "$1" >>"$session_at/log"
}
