#!/usr/bin/env bats
# What is read as a number may be anything: in (( )) bash would run a name that looks like a subscript, take 08 for an
# octal number, and leave the script where neither is one.

# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2154 # literal dollars are meant; each test has a shell of its own
load library

evil='a[$(touch pwned)]'

setup() {
  source_library record clock hold evidence end attempt
  run=$BATS_TEST_TMPDIR run_id=grid-20260101T000000Z-abcd
  mkdir -p "$run/dispatch" "$run/slurm"
  cd "$run" || return
}

untouched() {
  [[ ! -e $run/pwned && ! -e pwned ]]
}

@test "a claim's numbers" {
  local success planned globs video_globs first_planned ranged episode_field evidence_records evidence_line evidence_files log_tells
  printf '%s\n' count=0008 first=09 >claim
  attempt::rules "$run" || return
  same "$planned/$first_planned" 8/9
  printf '%s\n' "count=$evil" "first=$evil" >claim
  attempt::rules "$run" || return
  same "$planned/$first_planned" 0/0
  untouched
}

@test "an attempt's number" {
  local attempt
  mkdir -p sessions/env_one/attempt-{2,08,999999999999999999999}
  touch sessions/env_one/attempt-{2,08,999999999999999999999}/claim
  attempt::latest env_one || true
  same "$attempt" 2
}

@test "when a server ended, and how often in a row" {
  source_library servers_tend
  local failures left_ms resumed_ms=0
  mkdir -p servers/m/attempt-{1,2}
  printf '%s\n' cause=exited ended=1000000001.5 >servers/m/attempt-1/end
  printf '%s\n' cause=exited ended=1000000002.5 >servers/m/attempt-2/end
  declare -gA server_at=([m]=2)
  servers::failures m || return
  same "$failures" 2
  printf '%s\n' cause=exited "ended=$evil" >servers/m/attempt-1/end
  printf 'at=1000000000.5\n' | tee servers/m/attempt-{1,2}/ready >/dev/null
  servers::failures m || return
  same "$failures" 1
  untouched
}

@test "where Slurm's words begin" {
  source_library slurm_words
  local cause='' note=''
  printf 'slurmstepd: error: *** JOB 2 ON n1 CANCELLED AT x DUE TO PREEMPTION ***\n' >said
  slurm_words::find said "$evil"
  same "$cause" preempted
  untouched
}

@test "a port" {
  source_library ready
  local port=$evil session_marker=none
  ready::own
  untouched
}

@test "what a laptop says that it has" {
  mkdir -p sessions/env_one/attempt-1/out
  printf '{}\n' >sessions/env_one/attempt-1/out/a.jsonl
  printf 'results=*.jsonl\n' >sessions/env_one/attempt-1/claim
  printf 'env_one\t0\t-\n' >dispatch/queue.tsv
  printf '%s\n' "$run_id" >id
  printf '%s\n' "have $evil,1 sessions/env_one/attempt-1/out/a.jsonl" "part $evil,2,3 id" 'again whole ' . |
    bash "$library/fetch.sh" "$run" MARK 1000000 | tr '\0' '\n' >answer
  grep -q 'MARKover 0' answer
  grep -q 'file 3,[0-9]*,0,3,.* sessions/env_one/attempt-1/out/a.jsonl' answer
  untouched
}

@test "how many paths follow" {
  local code=0
  printf '%s\0' "$run" "$evil" | bash -c 'source "$1/sync.sh"; sync::look' sync "$library" >answer || code=$?
  same "$code" 65
  untouched
}

@test "an empty line is nobody's" {
  source_library decided slurm_share
  printf '{"a": 1}\n\n{"b": 1}\n' >dispatch/decided
  control::write_decided <<<'{"c": 1}'
  grep -qx '{"c": 1}' dispatch/decided
  printf '7 3\n\n8 2\n' >slurm/shares
  local -A share_of=([8]=2 [7]=3)
  local arrays=(7 8) refusal=''
  share::tell
  same "$refusal" ''
}
