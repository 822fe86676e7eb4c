#!/usr/bin/env bats
# count.sh: records and logs of a whole run, for the probe and for notices: however many files there are, and whatever
# the run's folder is called.

# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2154 # literal dollars are meant; values come through variables
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

planned() { # <session> <first> <count> : as its script says
  mkdir -p "$run/sessions/$1"
  printf '%s\n' "name=$1" "first=$2" "count=$3" >"$run/sessions/$1/session.sh"
  printf '%s\t0\t-\n' "$1" >>"$run/dispatch/queue.tsv"
}

ended() { # <session> <attempt> <records> <successes> <completeness> [cause]
  mkdir -p "$run/sessions/$1/attempt-$2"
  printf '%s\n' "cause=${6-exited}" class= "completeness=$5" "records=$3" "successes=$4" >"$run/sessions/$1/attempt-$2/end"
}

sums() { # <records> <planned> <successes> <surplus>
  local -A tally=()
  local records=0 planned=0 successes=0 surplus=0
  sums::add_up || true # as the library calls it, without -e
  same "$records/$planned/$successes/$surplus" "$1/$2/$3/$4"
}

@test "a notice counts an episode of a combo once, however many sessions and attempts are for it" {
  run=$PWD
  mkdir dispatch
  planned env_one 0 6 # with a gap that another session fills
  ended env_one 1 4 2 partial
  planned env_one_e3-4 3 2
  ended env_one_e3-4 1 2 1 complete
  planned env_two_e0-2 0 3 # shards, of which one is tried again as a whole
  ended env_two_e0-2 1 2 2 none stopped
  ended env_two_e0-2 2 3 1 complete
  planned env_two_e3-5 3 3
  planned env_three 0 8 # no longer needed
  ended env_three 1 0 0 none not_needed
  sums 9 12 4 0
}

@test "a notice never tells more than was planned, nor successes where it is open which lines they are" {
  run=$PWD
  mkdir dispatch
  planned env_one 0 3 # two lines for each episode
  ended env_one 1 6 4 complete
  sums 3 3 null 3
  rm dispatch/queue.tsv
  planned env_two 0 3 # all of its lines are successes, or none
  ended env_two 1 5 5 complete
  planned env_three 0 3
  ended env_three 1 5 0 complete
  planned env_four 0 0 # how many it makes is up to the program
  ended env_four 1 7 2 complete
  sums 13 6 5 4
}

@test "what a whole attempt has done so far is no addition to the one before it" {
  local name=env_one at=sessions/env_one/attempt-2 state start boot
  run=$PWD
  mkdir dispatch
  planned env_one 0 5
  ended env_one 1 3 1 partial
  attempt_of "$at" 2
  process::look $$
  process::boot
  printf '%s\n' "supervisor=$$" "supervisor_start=$start" "boot=$boot" count=5 "success=$success" 'results=*.jsonl' >"$at/claim"
  sums 3 5 1 0
}
