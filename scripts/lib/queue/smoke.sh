# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# smoke.sh: sessions that try every combo for a few episodes go first; the others wait until each has left a record. To
# be sourced by dispatch.sh. What had ended when a person last said `resume` is let pass.

smoke_on=0 # the others wait

smoke::open() { # whenever the queue has been read
  local name
  smoke_on=0
  for name in "${order[@]}"; do [[ ${flag_of[$name]} == smoke ]] && smoke_on=1; done
  ((smoke_on == 0)) || smoke::judge
}

smoke::holds_back() { # <session>
  ((smoke_on)) && [[ ${flag_of[$1]} != smoke && $1 != after ]]
}

smoke::judge() { # when all have ended
  local name missing=''
  for name in "${order[@]}"; do
    [[ ${flag_of[$name]} == smoke ]] || continue
    [[ ${life_of[$name]} == ended ]] || return 0
    smoke::passed "$name" || missing+="${missing:+, }$name"
  done
  if [[ $missing ]]; then
    dispatch::halt "the smoke test left no record: $missing"
  else
    smoke_on=0
    dispatch::journal 'smoke passed'
  fi
}

smoke::passed() { # <session>
  local number
  for ((number = attempt_of[$1]; number > 0; number--)); do
    record::read "$run/sessions/$1/attempt-$number/end" || continue
    [[ ${record[completeness]-} == complete || ${record[records]-0} =~ ^0*[1-9] ]] && return
    ((number == attempt_of[$1])) && hold::forgiven "${record[ended]-}" && return # one that was tried again is judged
  done
  return 1
}
