#!/usr/bin/env bats
# evidence.sh: records, successes, completeness.

# shellcheck disable=SC2016,SC2034,SC2154 # literal dollars are meant; values come through variables
load library

success='"success": *(true|1(\.0+)?) *[,}]'

setup() {
  source_library evidence
  mkdir -p "$BATS_TEST_TMPDIR/an out"
  cd "$BATS_TEST_TMPDIR/an out" || return
}

count() { # <glob>... -> records successes
  local files
  evidence::files "$PWD" "$@"
  evidence::count "$success" "${files[@]}" || return
}

@test "records and successes are counted over all files that match" {
  printf '{"success": true}\n{"success": false}\n' >a.jsonl
  printf '{"success": 1, "x": 2}\n' >'b c.jsonl'
  printf '{"success": true}\n' >other.txt
  count '*.jsonl'
  same "$records/$successes" 3/2
}

@test "a result may lie wherever a link leads, and a link that leads nowhere is known" {
  mkdir ../scratch
  printf '{"success": true}\n' >../scratch/kept
  ln -s ../scratch/kept linked.jsonl
  ln -s ../scratch here
  ln -s nowhere broken.jsonl
  ln -s round.jsonl round.jsonl
  ln -s nowhere .hidden.jsonl
  touch empty.jsonl
  local files broken
  evidence::files "$PWD" '*.jsonl' 'here/*' '**/*.jsonl'
  same "${files[*]#"$PWD/"}" 'linked.jsonl here/kept'
  same "${broken[*]#"$PWD/"}" 'broken.jsonl round.jsonl'
}

@test "one line twice is one record, in whichever file" {
  printf '{"episode": 0, "success": true}\n{"episode": 0, "success": true}\n' >a.jsonl
  cp a.jsonl b.jsonl
  count '*.jsonl'
  same "$records/$successes" 1/1
}

@test "a torn last line is no record, though it looks like a success" {
  printf '{"episode": 0, "success": false}\n{"episode": 1, "success": true, "rew' >a.jsonl
  count '*.jsonl'
  same "$records/$successes" 1/0
}

@test "windows line ends, blanks, binary garbage and empty files are no matter" {
  printf '{"success": true}\r\n  {"success": 1.0 }  \r\n\r\n\0\377\376\n{"success": 10}\n' >a.jsonl
  : >empty.jsonl
  mkdir folder.jsonl
  count '*.jsonl'
  same "$records/$successes" 3/2
}

@test "a pattern that ends in a dollar sign holds with windows line ends" {
  printf '{"success": true}\r\n' >a.jsonl
  evidence::count 'true}$' "$PWD/a.jsonl"
  same "$successes" 1
}

@test "globs reach below, may hold spaces, and match nothing without harm" {
  mkdir -p 'deep/er one'
  printf '{}\n' >'deep/er one/x.jsonl'
  count 'deep/er one/*.jsonl'
  same "$records" 1
  count '**/*.jsonl' 'nothing/*.jsonl'
  same "$records" 1
  count '$(touch pwned)*' '; touch pwned'
  same "$records" 0
  [[ ! -e pwned ]]
}

@test "a success pattern that is none is told, and counts nothing" {
  printf '{"success": true}\n' >a.jsonl
  run evidence::count '(' "$PWD/a.jsonl"
  ((status))
  evidence::count '' "$PWD/a.jsonl"
  same "$records/$successes" 1/0
}

@test "more files than one command line should hold" {
  local i
  for ((i = 0; i < 1203; i++)); do printf '{"episode": %d, "success": true}\n' "$i" >"$i.jsonl"; done
  count '*.jsonl'
  same "$records/$successes" 1203/1203
}

judged() { # <planned> <code> <records are evidence> <records> <expected> [<other evidence> <what holds of it>]
  local completeness records=$4
  evidence::judge "$1" "$2" "$3" "${6:-0}" "${7:-0}"
  same "$completeness" "$5"
}

@test "records decide, and the exit code only where no evidence is named" {
  judged 10 0 1 10 complete
  judged 10 137 1 12 complete
  judged 10 0 1 9 partial
  judged 10 0 1 0 none
  judged 10 0 0 0 complete
  judged 10 1 0 0 none
  judged 10 '' 0 0 none
}

@test "where nothing is planned, records and the exit code together decide" {
  judged 0 0 1 3 complete
  judged 0 1 1 3 partial
  judged 0 '' 1 3 partial
  judged 0 0 1 0 none
}

@test "all the evidence that is named has to hold, and then the exit code does not matter" {
  judged 10 0 1 10 partial 2 1
  judged 10 139 1 10 complete 2 2
  judged 10 0 1 9 partial 2 2
  judged 10 0 1 0 none 1 1
  judged 0 139 1 3 complete 1 1
}

@test "records that are no evidence make an attempt partial, and never complete" {
  judged 10 1 0 10 complete 1 1
  judged 10 0 0 10 partial 1 0
  judged 10 0 0 0 none 1 0
  judged 10 1 0 4 partial
}

@test "a line of the log is found after a carriage return and among garbage, and a pattern that is none is told" {
  printf 'a\0\377b\n 99%%\r100%%\rEvaluation complete!\r\n' >log
  evidence::line_there '^Evaluation complete!$' log
  run evidence::line_there 'Evaluation completed' log
  same "$status" 1
  run evidence::line_there '(' log
  same "$status" 2
  run evidence::line_there 'anything' nothing
  same "$status" 1
}
