#!/usr/bin/env bats
# signatures.sh, repetition.sh, pressure.sh and the class of an end: how a failure gets its name.

# shellcheck disable=SC2016,SC2034,SC2154 # literal dollars are meant; values come through variables
load library

setup() {
  source_library record evidence attempt end pressure signatures repetition watch
  cd "$BATS_TEST_TMPDIR" || return
}

class_of() { # <completeness> <cause> <code> <signal> <expected>
  local class
  end::class "$1" "$2" "$3" "$4"
  same "$class" "$5"
}

@test "the class follows from the cause, and what is complete or was stopped has none" {
  class_of complete exited 0 '' ''
  class_of complete signal 139 11 ''
  class_of complete hung 130 2 ''
  class_of none stopped 143 15 ''
  class_of none exited 0 '' no_result
  class_of partial exited 0 '' no_result
  class_of partial exited 1 '' error
  class_of none exited '' '' error
  class_of none launch_failed 127 '' launch_failed
  class_of partial stalled 130 2 stalled
  class_of partial timed_out 143 15 timed_out
  class_of partial lost '' '' lost
  class_of partial gpu_memory 1 '' gpu_memory
  class_of partial hung 130 2 stalled
}

@test "signals of a program's own making are crashes, all others were sent" {
  local number
  for number in 4 5 6 7 8 11 31; do class_of partial signal $((128 + number)) "$number" crashed; done
  for number in 1 2 3 9 10 13 15 24 25; do class_of partial signal $((128 + number)) "$number" killed; done
}

found() { # <expected class> <expected line> [signature]...
  local signature line flaws
  signature::find log "${@:3}" || :
  same "$signature|$line" "$1|$2"
}

@test "the signature that comes first in the table wins, with the last line that matches it" {
  printf '%s\n' 'step 1' 'Segmentation fault' 'CUDA out of memory: 1' 'CUDA out of memory: 2' 'bye' >log
  found gpu_memory 'CUDA out of memory: 2'
  found error 'bye' 'error ^bye$'
}

@test "a log without a signature, an empty one and none at all tell nothing" {
  printf 'all good\n' >log
  found '' ''
  : >log
  found '' ''
  rm log
  found '' ''
}

@test "what is ignored is looked at by no other pattern, whatever comes first" {
  printf 'vkCreateInstance failed: GPU is lost\n' >log
  found '' ''
  printf 'GPU is lost (harmless here)\nNo space left on device\n' >log
  found disk_full 'No space left on device' 'gpu_fault GPU is lost' 'ignore harmless here'
}

@test "only the end of a log is searched" {
  { printf 'CUDA out of memory\n' && printf '%0200000d\n' 0; } >log
  found '' ''
}

@test "every pattern of the table is a regular expression, of a class that there is" {
  local entry pattern
  for entry in "${builtin_signatures[@]}"; do
    pattern=${entry#* }
    [[ ${entry%% *} == @(ignore|gpu_memory|gpu_fault|host_memory|disk_full|server_lost|launch_failed|crashed) ]]
    run grep -E -- "$pattern" /dev/null
    same "$status" 1
    run signature::usable "$entry"
    same "$status" 0
  done
}

news() { # <text> <expected: 0 for something new> ; appends to the log and looks
  local rc=0
  printf '%b' "$1" >>log
  repetition::look log || rc=1
  same "$rc" "$2"
}

many() { # <how often> <line>
  local i
  for ((i = 0; i < $1; i++)); do printf '%s' "$2\\n"; done
}

@test "the same line again is nothing new, however often" {
  news 'loading\nrendering\n' 0
  news 'rendering\n' 1
  news "$(many 30 rendering)" 1
  same "$repeated" 32
  news 'rendering\nnext\n' 0
  news 'rendering\n' 0
}

@test "another line in between is something new, though the end looks the same" {
  news "$(many 5 rendering)" 0
  news "other\n$(many 3 rendering)" 0
  news 'rendering\n' 1
}

@test "a line that counts is progress, and a complaint that counts is none" {
  news 'step 1 of 9\n' 0
  news 'step 2 of 9\n' 0
  news '[12:00:01] retry 1: Connection refused at 0x7ffe12\n' 0
  news '[12:00:02] retry 2: Connection refused at 0x7aab99\n' 1
  news '12:00:03 Waiting for the server\n' 0
  news '12:00:04 Waiting for the server\n' 1
}

round() { # <how often> <count it begins with> ; a traceback and what the program does about it
  local i
  for ((i = 0; i < $1; i++)); do
    printf '%s' "12:00:$((10 + i)) INFO step $2\\nTraceback:\\n  File x.py, line 3\\nConnectionError at 0x7f0$i\\n"
  done
}

@test "a complaint that comes again in a round of lines is nothing new, wherever the round is looked at" {
  news "$(round 3 7)" 0
  news "$(round 2 7)" 1
  same "$repeated|$repeated_line|$repetition_loop" '5|connectionerror at |'
  news "12:00:59 INFO step 7\\nTraceback:\\n" 1
  news "  File x.py, line 3\\nConnectionError at 0x1\\n$(round 20 7)" 1
  same "$repetition_loop" 1
  news 'found it\n' 0
  same "$repetition_loop" ''
  news "$(many 3 'scene 4 failed to load at 0x1f\nretrying...')" 0
  same "$repeated|$repeated_line" '3|scene  failed to load at '
}

@test "a round in which something counts, or nothing complains, is progress" {
  news "$(round 4 1)" 0
  news "$(round 1 2)" 0
  news "$(round 1 3)" 0
  news "$(many 9 'moved to its goal\nreached it')" 0
  news 'moved to its goal\nreached it\n' 0
}

@test "a complaint that tells which episode it is about, or how many of all, is progress" {
  unit=step count=50
  news "$(many 30 'Episode 7: failure, retry 1')" 0
  news 'Episode 7: failure, retry 2\n' 1
  news 'Episode 8: failure, retry 1\n' 0
  news '[ 8/50] stairs TIMEOUT\n' 0
  news '[ 9/50] stairs TIMEOUT\n' 0
  news 'attempt 1/5 failed\n' 0
  news 'attempt 2/5 failed\n' 1
}

@test "a line that complains of nothing is no loop, however often it comes" {
  news "$(many 30 'WARNING: joint limit')" 0
  same "$repeated|$repetition_loop" '30|'
  news "$(many 30 'lost the target')" 0
  same "$repeated|$repetition_loop" '30|1'
}

@test "a log that is full of one line stays so" {
  news "$(many 4000 'the same old line')" 0
  news "$(many 1000 'the same old line')" 1
}

@test "a bar that is drawn over itself is progress" {
  news ' 10%|#\r 20%|##' 0
  news '\r 30%|###' 0
}

milliseconds() { # <seconds> <expected>
  local poll_ms
  watch::milliseconds "$1"
  same "$poll_ms" "$2"
}

@test "seconds with a fraction become milliseconds, and never too few" {
  milliseconds 5 5000
  milliseconds 0.1 100
  milliseconds 1.25 1250
  milliseconds 0.0809 80
  milliseconds 08.5 8500
  milliseconds 0 20
}

@test "what was killed for memory since then is counted in the group before the host" {
  pressure::kills() { group_kills=5 host_kills=9; }
  local killed where
  pressure::since 3 9
  same "$killed $where" '2 in its control group'
  pressure::since 5 6
  same "$killed $where" '3 on this machine'
  run pressure::since 5 9
  ((status))
  run pressure::since '' ''
  ((status))
}
