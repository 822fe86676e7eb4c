#!/usr/bin/env bats
# count.sh: records and logs of a whole run, for the probe and for notices: however many files there are, and whatever
# the run's folder is called.

# shellcheck disable=SC2016,SC2034,SC2154 # literal dollars are meant; values come through variables
load library

success='"success": *(true|1(\.0+)?) *[,}]'

setup() {
  source_library record clock evidence end attempt policy retry hold notice
  cd "$BATS_TEST_TMPDIR" || return
}

attempt_of() { # <attempt directory> <records, the first of them a success>
  local i
  mkdir -p "$1/out"
  for ((i = 0; i < $2; i++)); do printf '{"episode": %d, "success": %s}\n' "$i" "$((i == 0))"; done >"$1/out/a.jsonl"
}

@test "records are counted by attempt, and successes by its own pattern" {
  local one=sessions/env_one/attempt-1 two=sessions/env_two/attempt-2 three=sessions/env_three/attempt-1
  attempt_of "$one" 3
  attempt_of "$two" 2
  attempt_of "$three" 4
  count::add "$success" "$one/out/a.jsonl"
  count::add '"episode": *[01]' "$two/out/a.jsonl"
  count::add '' "$three/out/a.jsonl"
  count::add "$success"
  count::records
  same "${records_of[$one]}/${successes_of[$one]}" 3/1
  same "${records_of[$two]}/${successes_of[$two]}" 2/2
  same "${records_of[$three]}/${successes_of[$three]-none}" 4/none
}

few_words() { # a command line may hold no more than 128 KiB from now on, and not 2 MiB
  ulimit -S -s 512
}

@test "more files are counted than fit into one command line" {
  local at=sessions/env_one/attempt-1 files=() i
  mkdir -p "$at/out"
  for ((i = 0; i < 1200; i++)); do files+=("$at/out/an_episode_with_a_name_that_is_as_long_as_those_of_some_programs_are_$i.jsonl"); done
  printf '{"success": true}\n' | tee "${files[@]}" >/dev/null
  few_words
  count::add "$success" "${files[@]}"
  count::records
  same "${records_of[$at]}/${successes_of[$at]}" 1200/1200
}

@test "more logs are looked at than fit into one command line" {
  local -A log_of=()
  local logs=() i at=sessions/././././././././././././././././././././././././././././././././././././././././././././././.
  mkdir -p sessions
  printf 'four' >sessions/log
  for ((i = 0; i < 1200; i++)); do logs+=("$at/log"); done
  few_words
  count::logs "${logs[@]}"
  [[ ${log_of[$at]} == 'size=4 changed='* ]]
}

@test "the name of a file is no number" {
  local at=sessions/env_one/attempt-1
  attempt_of "$at" 1
  printf '{}\n' >"$at/out/"$'a\na[$(touch pwned)].jsonl'
  count::add '{}' "$at/out/"*.jsonl
  count::records
  same "${records_of[$at]}/${successes_of[$at]}" 2/1
  [[ ! -e pwned ]]
}

@test "a notice counts what runs, whatever the run's folder is called" {
  local folder name state start boot json
  for folder in "it's" 'a "quoted" one' 'odd ] one' 'odd [ one' '$(touch pwned)' '`touch pwned`' 'x/out/y' 'a b'; do
    run=$BATS_TEST_TMPDIR/$folder/grid-20260101T000000Z-9f3c run_id=grid-20260101T000000Z-9f3c
    attempt_of "$run/sessions/env_one/attempt-1" 3
    attempt_of "$run/sessions/env_two/attempt-1" 2
    process::look $$
    process::boot
    for name in env_one env_two; do
      printf '%s\n' "supervisor=$$" "supervisor_start=$start" "boot=$boot" count=5 "success=$success" 'results=*.jsonl' \
        >"$run/sessions/$name/attempt-1/claim"
    done
    mkdir -p "$run/dispatch"
    printf 'env_one\t0\t-\nenv_two\t0\t-\n' >"$run/dispatch/queue.tsv"
    notice::build test '' 'a test' '' || return
    [[ $json == *'"running": 2, '* ]]
    [[ $json == *'"records": 5, '*'"successes": 2, '* ]]
    [[ ! -e pwned ]]
  done
}
