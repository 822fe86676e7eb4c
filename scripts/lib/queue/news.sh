# shellcheck shell=bash
# shellcheck disable=SC2004,SC2034,SC2154 # values are handed on through variables that the callers name
# news.sh: how the dispatcher learns of what happens: messages, and a look at what no message told. To be sourced by
# dispatch.sh.

declare -gA supervisor_of=() # name -> pid and start time of its session.sh
declare -gA watch_of=()      # name of an orphan -> the process that watches it for us
declare -gA stalled_told=()  # name -> the attempt whose stall has been told
amended=0                    # told to read the queue again while `after` runs

news::listen() { # at the run's FIFO, on 3; somebody may remove it, and then who speaks finds another one
  local fifo=$run/dispatch/fifo
  [[ $fifo -ef /proc/$$/fd/3 ]] && return
  if [[ ! -p $fifo ]]; then
    rm -f -- "$fifo" && mkfifo -- "$fifo" 3>&- 4>&- 8>&- || return
  fi
  exec 3<>"$fifo"
}

news::drain() { # what else has been said by now: many ends at once are one look at the queue, and a slot waits no longer
  local line heard=0
  while ((heard < 32)) && read -r -t 0 -u 3; do
    IFS= read -r -t 0.01 -u 3 line || {
      text+=$line
      return
    }
    news::hear "$text$line"
    text='' heard=$((heard + 1))
  done
}

news::hear() { # <message> : WHAT SESSION ATTEMPT [WORD], as session::tell and control.sh say it
  [[ $1 =~ ^([a-z]+)\ ([A-Za-z0-9_-]+)\ ([0-9]{1,9})(\ ([0-9]*))?$ ]] || return 0
  local what=${BASH_REMATCH[1]} name=${BASH_REMATCH[2]} number=$((10#${BASH_REMATCH[3]})) word=${BASH_REMATCH[5]}
  case $what in
    memory) short::heard && return ;;
    measured) admit::measured "$number" && give_way::measured && return ;;
    reread | again) news::heed "$what" "$name" && return ;;
  esac
  [[ ! ${server_life[$name]-} ]] || { servers::heard "$what" "$name" "$number" && return; }
  [[ ${attempt_of[$name]+known} ]] || return 0
  [[ $what == @(ahead|gone|refused) ]] && ahead::heard "$what" "$name" "$number" "$word"
  if [[ ${life_of[$name]} == queued && -e $run/sessions/$name/attempt-$number/end ]] &&
    ((number == attempt_of[$name] + 1)); then
    attempt_of[$name]=$number # stopped before it started
    ahead::forget "$name"
    queue::leave "$name"
  fi
  ((number == attempt_of[$name])) || return 0 # an echo of the past
  case $what in
    free) [[ ${life_of[$name]} == @(starting|running|orphaned) ]] && ! breaker::wary && queue::release "$name" closing ;;
    ended) settle::ended "$name" ;;
    progressed) starts::progressed "$name" ;;
    refused) [[ ${life_of[$name]} == starting ]] && launch::refused "$name" "session.sh left with code ${word:-0}" ;;
  esac
}

news::heed() { # <reread or again> <session> : what a person asked for
  if [[ $phase == after && $2 != after ]]; then
    amended=1
  elif [[ $1 == reread ]]; then
    queue::reread
  elif [[ ${attempt_of[$2]+known} ]]; then
    queue::again "$2"
  fi
  return 0
}

news::sweep() { # what no message told
  local name life pid start state born vanished=()
  [[ $run/dispatch/fifo -ef /proc/$$/fd/3 ]] || { news::listen && ahead::again; }
  for name in "${!life_of[@]}"; do
    [[ ${life_of[$name]} == @(starting|running|orphaned|closing|lost) ]] || continue
    news::stalled "$name"
    [[ ${undertaker_of[$name]-} ]] && kill -0 "${undertaker_of[$name]}" 2>/dev/null && continue
    pid=${supervisor_of[$name]-}
    born=${pid#* } pid=${pid% *}
    if [[ $pid ]] && process::look "$pid" && [[ $start == "$born" && $state != [ZX] ]]; then
      continue
    fi
    attempt::look "$name" "${attempt_of[$name]}"
    news::see "$name" "$life"
  done
  ((${#vanished[@]} < 2)) || notify::tell host '' "${#vanished[@]} sessions vanished together: ${vanished[*]}"
  ((${#server_names[@]} == 0)) || servers::sweep
  lease::flush
  notify::flush
  waiting::tell
}

news::see() { # <session> <life as its files tell>
  case $2 in
    ended) settle::ended "$1" ;;
    lost)
      [[ ${life_of[$1]} == lost ]] || vanished+=("$1")
      ((${#vanished[@]} > 1)) && breaker_mute[$1]=1
      settle::bury "$1"
      ;;
    starting | queued) launch::overdue "$1" ;;
    running | orphaned)
      [[ ${life_of[$1]} == closing ]] && return
      [[ ${life_of[$1]} == "$2" ]] || dispatch::journal "$2 $1 ${attempt_of[$1]}"
      life_of[$1]=$2
      if [[ $2 == orphaned ]]; then
        news::watch "$1"
      else
        supervisor_of[$1]="${record[supervisor]} ${record[supervisor_start]}"
      fi
      ;;
  esac
}

news::watch() { # <session> : nobody else sees to it that an orphan ends
  [[ ${watch_of[$1]-} ]] && kill -0 "${watch_of[$1]}" 2>/dev/null && return
  bash "$run/sessions/$1/session.sh" "${attempt_of[$1]}" none orphan </dev/null 3>&- 4>&- 8>&- &
  watch_of[$1]=$!
}

news::stalled() { # <session> : told once for each attempt
  [[ -e $run/sessions/$1/attempt-${attempt_of[$1]}/stalled && ${stalled_told[$1]-} != "${attempt_of[$1]}" ]] || return 0
  stalled_told[$1]=${attempt_of[$1]}
  record::read "$run/sessions/$1/attempt-${attempt_of[$1]}/stalled"
  notify::tell stalled "$1" "$1 makes no progress: ${record[why]-}"
}
