#!/usr/bin/env bats
# The small pure parts of what the dispatcher decides: waits, budgets, clocks, notices as JSON.

# shellcheck disable=SC2016,SC2034,SC2154 # literal dollars are meant; values come through variables
load library

setup() {
  source_library record clock evidence end marker attempt policy retry hold json notice held
  run=$BATS_TEST_TMPDIR run_id=bench-20260101T000000Z-9f3c
  mkdir -p "$run/dispatch"
}

@test "a wait doubles with every failure, up to half an hour" {
  local wait_ms pair
  for pair in 1:10000 2:20000 4:80000 9:1800000 60:1800000; do
    retry::wait 10000 "${pair%:*}"
    same "$wait_ms" "${pair#*:}"
  done
  retry::wait 0 5
  same "$wait_ms" 0
}

left() { # <time of day> <milliseconds> <least> <most>
  local left_ms
  clock::left_ms "$1" "$2"
  ((left_ms >= $3 && left_ms <= $4)) || {
    printf 'left: %s\n' "$left_ms" >&2
    return 1
  }
}

@test "a clock that was set makes no wait longer than it was meant to be" {
  local now
  record::now
  left "$now" 5000 4000 5000
  left "$((${now%.*} - 2)).5" 5000 1500 3500
  left "$((${now%.*} - 3600)).000000" 5000 0 0
  left "$((${now%.*} + 3600)).000000" 5000 5000 5000
  left '' 5000 5000 5000
  left 'x[$(touch pwned)]' 5000 5000 5000
}

@test "the clock for waits does not go back" {
  local now_ms before
  clock::now_ms
  before=$now_ms
  clock::now_ms
  ((now_ms >= before && before > 0))
}

@test "what is no number or clean word in the policy is passed over, and the rest has its old meaning" {
  printf '%s\t%s\n' parallel 08 attempts x retry_crashed 2 'bad key' 1 gpus 'x[$(id)]' breaker '' wait_lost_ms 5 \
    >"$run/dispatch/policy.tsv"
  policy::read "$run/dispatch/policy.tsv"
  same "${policy[parallel]} ${policy[attempts]} ${policy[retry_crashed]} ${policy[gpus]} ${policy[breaker]}" '8 1 2 - 3'
  same "${policy[retry_lost]} ${policy[wait_lost_ms]}" '0 5'
  same "${policy[bad key]-}" ''
}

ends() { # <class>... : attempts 1, 2 ... of a_b, `stopped` for a person's stop
  local class number=0 cause
  rm -rf "$run/sessions"
  for class in "$@"; do
    number=$((number + 1)) cause=signal
    [[ $class == stopped ]] && cause=stopped
    mkdir -p "$run/sessions/a_b/attempt-$number"
    printf '%s\n' "attempt=$number" ended=1000000000.5 "cause=$cause" "class=$class" completeness=none \
      >"$run/sessions/a_b/attempt-$number/end"
  done
}

due() { # <expected: yes or no> <class>...
  local class wait_ms answer=no expected=$1
  shift
  ends "$@"
  retry::due a_b $# && answer=yes
  same "$answer" "$expected"
}

@test "each class has its budget, and all attempts together have theirs" {
  policy=([attempts]=4 [retry_crashed]=1 [retry_killed]=2)
  due yes crashed
  due no crashed crashed
  due yes crashed killed
  due yes killed crashed killed
  due no error
  due no killed crashed killed error
  due no killed killed crashed killed
}

@test "budgets begin anew where a person's hand was in it" {
  policy=([attempts]=2 [retry_crashed]=1)
  due no crashed crashed
  due yes crashed crashed stopped crashed
  due no crashed stopped
  ends crashed crashed crashed
  printf 'attempt=2\nat=1\n' >"$run/sessions/a_b/again"
  retry::due a_b 3
  printf 'attempt=1\nat=1\n' >"$run/sessions/a_b/again"
  run retry::due a_b 3
  ((status))
  printf 'attempt=3\nat=1\n' >"$run/sessions/a_b/again"
  retry::pending a_b 3
}

text() { # <text> <JSON>
  local json
  json::text "$1"
  same "$json" "$2"
}

@test "any bytes become a JSON string" {
  text 'plain' '"plain"'
  text 'a "b" \ c&d' '"a \"b\" \\ c&d"'
  text $'two\nlines\tand a tab' '"two\nlines\tand a tab"'
  text $'\033[31mred\033[0m\a\177' '"[31mred[0m"'
  text $'caf\303\251 \342\202\254 \360\237\244\226' $'"caf\303\251 \342\202\254 \360\237\244\226"'
  text $'torn \303' '"torn "'
  text $'\377\376bad\300\200 \355\240\200surrogate' '"bad surrogate"'
  text '' '""'
  local json
  json::list 'a b' '"'
  same "$json" '["a b", "\""]'
}

@test "a hold is told by its kind and why, and anything else holds nothing" {
  local hold hold_why hold_halted
  hold::look
  same "$hold" ''
  hold::order paused $'two\nlines'
  hold::look
  same "$hold/$hold_why" 'paused/two lines'
  printf 'kind=forever\nwhy=x\n' >"$run/dispatch/hold"
  hold::look
  same "$hold" ''
}

@test "a run that is halted stays what a person has ordered, with both reasons, whichever came first" {
  local hold hold_why hold_halted
  hold::order paused 'our turn later'
  hold::halt 'two failed'
  hold::look
  same "$hold/$hold_why/$hold_halted" 'paused/our turn later; halted besides: two failed/two failed'
  ! hold::halt 'three failed' # the first reason stays
  hold::order draining 'tonight'
  hold::look
  same "$hold/$hold_why" 'draining/tonight; halted besides: two failed'
  rm "$run/dispatch/hold"
  hold::halt 'two failed'
  hold::look
  same "$hold/$hold_why/$hold_halted" 'halted/two failed/two failed'
  hold::order paused 'our turn later'
  hold::look
  same "$hold/$hold_why" 'paused/our turn later; halted besides: two failed'
}

@test "the newest plan is the one with the highest number" {
  local plan
  cd "$run"
  : >plan-2.json
  : >plan-10.json
  : >plan-x.json
  probe::plan
  same "$plan" 10
}

@test "what waits is a line each, with the free text last, and an empty time stays empty" {
  cd "$run"
  printf '%s\t%s\t%s\t%s\n' a_b retry 12.5 'crashed, attempt 1' c_d gpu '' 'asks for 1 of 2 GPUs' >dispatch/waiting
  printf '1\tcrashed\t3.5\nx\ty\tz\n' >dispatch/quarantine
  hold::halt 'because of it'
  run_out=$(probe::held)
  [[ $run_out == 'hold kind=halted at='*' why=because of it
quarantine gpu=1 class=crashed at=3.5
waiting session=a_b for=retry until=12.5 detail=crashed, attempt 1
waiting session=c_d for=gpu until= detail=asks for 1 of 2 GPUs' ]]
}
