#!/usr/bin/env bats
# record.sh: records, process identity, time, locks.

# shellcheck disable=SC2016,SC2034,SC2154 # literal dollars are meant; values come through variables
load library

setup() {
  source_library record
  cd "$BATS_TEST_TMPDIR" || return
}

own_start() { # -> start of this very shell
  process::look "$BASHPID" && printf '%s' "$start"
}

@test "what was written is read back, whatever is in the values" {
  record::write "$PWD/end" 'code=0' 'note=a = b; $(touch pwned) "x" \n ü' 'empty='
  record::read "$PWD/end"
  same "${record[code]}" 0
  same "${record[note]}" 'a = b; $(touch pwned) "x" \n ü'
  same "${record[empty]-unset}" ''
  [[ ! -e pwned ]]
}

@test "a record is complete or absent, and leaves no draft behind" {
  record::write "$PWD/end" 'code=0'
  same "$(ls -A)" end
  run record::write "$PWD/missing/end" 'code=0'
  ((status))
}

@test "a record that cannot be put in its place leaves what was there" {
  mkdir -p end/inside
  run record::write "$PWD/end" 'code=0'
  ((status))
  same "$(ls -A . end)" $'.:\nend\n\nend:\ninside'
}

@test "garbage is no record" {
  local garbage
  for garbage in '' 'no pair' '=' '==x' 'a[$(touch pwned)]=1' '$(touch pwned)=1' 'UPPER=1'; do
    printf '%s\n' "$garbage" >end
    run record::read "$PWD/end"
    ((status)) || { printf 'taken for a record: %s\n' "$garbage" && return 1; }
  done
  run record::read "$PWD/missing"
  ((status))
  [[ ! -e pwned ]]
}

@test "a last line without its newline counts, and binary garbage around a pair does not hide it" {
  printf '\0\377\nboot=b\ncode=3' >end
  record::read "$PWD/end"
  same "${record[code]}" 3
  same "${record[boot]}" b
}

@test "reading forgets the record that was read before" {
  record::write "$PWD/one" 'code=0' 'note=old'
  record::write "$PWD/two" 'code=1'
  record::read "$PWD/one"
  record::read "$PWD/two"
  same "${record[note]-gone}" gone
}

@test "a note becomes one line of bounded length" {
  record::clean $'two\nlines\tand \e[31mred'
  same "$cleaned" 'two lines and  [31mred'
  record::clean "$(printf '%400s' x)"
  same "${#cleaned}" 300
}

@test "this process lives; with another start time or boot it is another one" {
  process::boot
  process::alive "$$" "$(process::look $$ && printf '%s' "$start")" "$boot"
  run process::alive "$$" 1 "$boot"
  ((status))
  run process::alive "$$" "$(own_start)" another-boot
  ((status))
}

@test "a zombie does not live, and neither does a pid that is none" {
  (exit 0) &
  local child=$! tries
  process::boot
  exec {hold}< <(exec sleep 30) # keeps this shell from reaping at once
  for ((tries = 0; tries < 100; tries++)); do
    process::look "$child" || break
    [[ $state == Z ]] && break
    sleep 0.02
  done
  run process::alive "$child" "${start:-1}" "$boot"
  ((status))
  for child in '' 0 x '1 2' '1;' '../1' 99999999; do
    run process::alive "$child" 1 "$boot"
    ((status)) || { printf 'said to live: %s\n' "$child" && return 1; }
  done
}

@test "a program's name with brackets and spaces does not shift the fields" {
  cp "$(command -v sleep)" 'a) R 1 (b'
  './a) R 1 (b' 30 3>&- &
  local child=$!
  process::look "$child" || return
  kill "$child"
  [[ $state == [SRD] && $start =~ ^[0-9]+$ ]]
  ((start > 1))
}

@test "time has a fraction, also for bash 4 and where a comma separates it" {
  record::now
  [[ $now =~ ^[0-9]{10}\.[0-9]+$ ]]
  unset EPOCHREALTIME
  record::now
  [[ $now =~ ^[0-9]{10}\.[0-9]{6}$ ]]
  EPOCHREALTIME=1700000000,123456 # no longer special once it was unset
  record::now
  same "$now" 1700000000.123456
  record::now_ms
  same "$now_ms" 1700000000123
}

@test "a lock is held for as long as somebody has it open" {
  : >lock
  run lock::held "$PWD/lock"
  ((status))
  (exec 7>>lock && flock 7 && exec sleep 30) 3>&- &
  local holder=$! tries
  for ((tries = 0; tries < 100; tries++)); do
    lock::held "$PWD/lock" && break
    sleep 0.02
  done
  lock::held "$PWD/lock"
  kill "$holder"
  for ((tries = 0; tries < 100; tries++)); do
    lock::held "$PWD/lock" || break
    sleep 0.02
  done
  run lock::held "$PWD/lock"
  ((status))
  run lock::held "$PWD/missing"
  ((status))
}

@test "two nodes with equal pids have drafts of their own, beside the file" {
  local draft one
  HOSTNAME=node-1.example
  record::draft "$PWD/end"
  one=$draft
  HOSTNAME=node-2.example
  record::draft "$PWD/end"
  same "${one%.*}" "$PWD/.end.node-1-example"
  same "${draft%.*}" "$PWD/.end.node-2-example"
}
