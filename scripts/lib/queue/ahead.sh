# shellcheck shell=bash
# shellcheck disable=SC2004,SC2034,SC2154 # values are handed on through variables that the callers name
# ahead.sh: open the windows of the sessions that come next before there is a slot for them, so that a free slot is
# taken in a few milliseconds. A window that was opened ahead has started nothing and claimed nothing: it waits at a
# FIFO of its own for the one word `go`, which follows the grant and the journal like any launch, and it leaves when
# its dispatcher does. To be sourced by dispatch.sh, by stop.sh and, for ahead::wait, by session.sh.

ahead_most=4               # windows
ahead_made=0               # FIFOs
ahead_free=()              # those that nobody waits at
declare -gA ahead_at=()    # session -> the FIFO that its window waits at, or will
declare -gA ahead_ready=() # session -> the pid of its session.sh, which waits
declare -gA ahead_told=()  # session that was told to go -> its FIFO, until it surely has heard it
ahead_not_before_ms=0

# The dispatcher's side

ahead::open() {
  ahead::dismiss
  trap ahead::dismiss EXIT
}

ahead::more() { # FIFOs; they carry the dispatcher's pid: what waits for a dead one can't hear this one
  local i
  for ((i = 0; i < ahead_most; i++)); do ahead_free+=("$run/dispatch/ahead-$$-$((ahead_made + i))"); done
  ahead_made=$((ahead_made + ahead_most))
  mkfifo -- "${ahead_free[@]}" 3>&- 4>&- 8>&- || ahead_free=()
}

ahead::dismiss() { # everything that waits, whoever opened it
  local fifo fifos=()
  for fifo in "$run/dispatch/ahead-"*; do
    [[ -p $fifo ]] || continue
    printf 'leave\n' 1<>"$fifo"
    fifos+=("$fifo")
  done
  ((${#fifos[@]} == 0)) || rm -f -- "${fifos[@]}"
}

ahead::fill() { # windows for the first sessions of the queue, as many as there are slots
  local i name now_ms seen=0 most=$((slots < ahead_most ? slots : ahead_most))
  [[ ! $hold ]] && ((${#ahead_at[@]} < most && launch_nobody == 0)) && ! starts::hold_all || return 0
  for ((i = next; i < ${#order[@]} && seen < most; i++)); do
    name=${order[i]}
    if launch::held_back "$name"; then
      ! starts::hold_all || return 0
      continue
    fi
    seen=$((seen + 1))
    [[ ${ahead_at[$name]-} ]] && continue
    clock::now_ms
    ((now_ms < ahead_not_before_ms)) && return
    ((${#ahead_free[@]})) || ahead::more
    ((${#ahead_free[@]})) || return
    ahead_at[$name]=${ahead_free[-1]}
    unset 'ahead_free[-1]'
    mux::start "$name" "$run/sessions/$name/session.sh" $((attempt_of[$name] + 1)) "${ahead_at[$name]}"
    client_of[$name]=$mux_client
  done
}

ahead::heard() { # <what> <session> <attempt> <word> : `ahead`: its window waits; `gone` or `refused`: it doesn't
  local name=$2
  [[ ${ahead_at[$name]-} ]] || return 0
  if [[ $1 != ahead ]]; then
    ahead::forget "$name"
    launch::refused "$name" 'its window was closed'
    return
  fi
  ahead_ready[$name]=$4
  [[ ${life_of[$name]} == starting ]] && (($3 == attempt_of[$name])) && ahead::go "$name"
  return 0
}

ahead::go() { # <session> : 1 when no window is open for it; one that is still on its way is told when it comes
  local state start
  [[ ${ahead_at[$1]-} ]] || return
  [[ ${ahead_ready[$1]-} ]] || return 0
  if ! process::look "${ahead_ready[$1]}"; then
    ahead::forget "$1"
    return 1
  fi
  printf 'go\n' 1<>"${ahead_at[$1]}"
  ahead_told[$1]=${ahead_at[$1]}
  unset "ahead_at[$1]" "ahead_ready[$1]"
}

ahead::heeded() { # <session> : it has run, so nobody waits at its FIFO any more
  [[ ${ahead_told[$1]-} ]] || return 0
  ahead_free+=("${ahead_told[$1]}")
  unset "ahead_told[$1]"
}

ahead::forget() { # <session> : its window leaves, if it is there; one that is still on its way finds no FIFO
  local fifo=${ahead_at[$1]-}${ahead_told[$1]-} now_ms
  [[ $fifo ]] || return 0
  printf 'leave\n' 1<>"$fifo"
  rm -f -- "$fifo"
  clock::now_ms
  ahead_not_before_ms=$((now_ms + 1000))
  unset "ahead_at[$1]" "ahead_ready[$1]" "ahead_told[$1]"
}

ahead::again() { # windows that may have spoken while nobody could hear them
  local name
  for name in "${!ahead_at[@]}"; do
    ahead::forget "$name"
    [[ ${life_of[$name]} != starting ]] || launch::start "$name"
  done
}

# The window's side

ahead::wait() { # <FIFO> : returns when it is told to go
  local word text='' fd state start boot
  trap 'session::tell gone; exit 0' HUP INT TERM
  [[ -p $1 ]] && { exec {fd}<>"$1"; } 2>/dev/null || exit 0
  session::lock
  printf '%s waits for a free slot\n' "$name"
  session::tell ahead "$$"
  until IFS= read -r -t 2 -u "$fd" word; do
    text+=$word # the time may be up in the middle of a word
    record::read "$run/dispatch/dispatcher"
    [[ $1 == */ahead-"${record[pid]-}"-* ]] || exit 0
    process::alive "${record[pid]}" "${record[start]-}" "${record[boot]-}" || exit 0
  done
  exec {fd}<&-
  [[ $text$word == go ]] || exit 0
}
