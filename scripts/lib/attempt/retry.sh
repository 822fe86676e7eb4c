# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# retry.sh: whether the end of an attempt calls for another one. To be sourced; needs `run` and `policy`. It is told
# from files alone (the ends, and `again`), so that a dispatcher that was killed counts on where it was, and stop.sh
# and control.sh come to the same answer. Budgets begin anew where a person's hand was in it: a stop, or `again`.

retry_longest_ms=1800000
retry_gives=10 # attempts that made room for others cost nothing, as long as they are no more

retry::asked() { # <session> -> after: the attempt after which a person asked for another; 0 when nobody did
  after=0
  [[ -e $run/sessions/$1/again ]] || return 0
  record::read "$run/sessions/$1/again"
  [[ ${record[attempt]-} =~ ^[0-9]{1,9}$ ]] && after=$((10#${record[attempt]}))
  return 0
}

retry::ask() { # <session> <attempt> : another one after that, with fresh budgets
  local now
  record::now
  record::write "$run/sessions/$1/again" "attempt=$2" "at=$now"
}

retry::history() { # <session> <attempt> -> class ended: of that attempt; made failures: attempts since a person's hand
  # was in it (those that Slurm preempted don't count), and how many of them failed alike
  local number after gave=0
  retry::asked "$1"
  made=0 failures=0 class='' ended=''
  for ((number = $2; number > after; number--)); do
    record::read "$run/sessions/$1/attempt-$number/end"
    [[ ${record[cause]-} == stopped ]] && break
    ((number == $2)) && class=${record[class]-error} ended=${record[ended]-}
    ((gave < retry_gives)) && retry::gave_way "$1" "$number" && gave=$((gave + 1)) && continue
    [[ ${record[cause]-} == preempted ]] || made=$((made + 1)) # it was not to blame
    [[ ${record[class]-error} == "$class" ]] && failures=$((failures + 1))
  done
}

retry::gave_way() { # <session> <attempt> : whether it ended to make room for others on its GPU, with nothing wrong with it
  [[ -e $run/sessions/$1/attempt-$2/give_way ]]
}

retry::due() { # <session> <attempt> -> class wait_ms: 1 when its end is the last word
  local made failures ended outcome left_ms
  class='' wait_ms=0
  record::read "$run/sessions/$1/attempt-$2/end" || return 1
  attempt::outcome
  [[ $outcome == @(partial|failed|lost) ]] || return 1
  [[ $1 != after || $outcome == lost ]] || return 1
  retry::history "$1" "$2"
  [[ $class =~ ^[a-z_]+$ ]] || return 1
  ((made < policy[attempts] && failures <= ${policy[retry_$class]:-0})) || return 1
  retry::wait "${policy[wait_${class}_ms]:-0}" "$failures"
  clock::left_ms "$ended" "$wait_ms"
  wait_ms=$left_ms
}

retry::wait() { # <first wait> <failures> -> wait_ms: doubling
  local i
  wait_ms=$1
  for ((i = 1; i < $2 && wait_ms < retry_longest_ms; i++)); do wait_ms=$((wait_ms * 2)); done
  ((wait_ms < retry_longest_ms)) || wait_ms=$retry_longest_ms
}

retry::pending() { # <session> <attempt> : whether a dispatcher would start it after this attempt, which has ended
  local after class wait_ms
  retry::asked "$1"
  ((after >= $2)) || retry::due "$1" "$2"
}
