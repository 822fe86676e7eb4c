#!/usr/bin/env bats
# Who gets what, and whose promise holds: what the dispatcher decides without a process.

# shellcheck disable=SC2016,SC2034,SC2154 # literal dollars are meant; values come through variables
load library

setup() {
  source_library record end evidence marker attempt clock host policy activity request gpus measure measured promise lease \
    leased room handout passing admit short spacing warm fewer give_way starts pick servers
  run=$BATS_TEST_TMPDIR run_id=bench-20260101T000000Z-9f3c
  mkdir -p "$run/dispatch"
  : >"$run/dispatch/policy.tsv"
  policy::read "$run/dispatch/policy.tsv"
  measure_answer=1 memory_asked=0 pause_ms=2000 warm_up_ms=0 stagger_ms=0 smoke_on=0
  declare -gA attempt_of=() life_of=() outcome_of=() wants=() gpus_of=() gpus_had=() supervisor_of=()
  lease_directory=$BATS_TEST_TMPDIR/leases
  journal=()
}

dispatch::journal() { journal+=("$*"); }
measure::ask() { measure_number=$((measure_number + 1)); }
smoke::holds_back() { false; }

@test "one that ran out of memory is alone also when another run was faster" {
  gpus::allow 0,1 4
  local who chosen wait_for wait_why
  for who in runs short; do request::read "$who" 1 0; done
  wants[short]=1 short_of[short]=gpu_memory short_ms[short]=0 attempt_of[short]=1 short_patience_ms=0
  promise::take runs 0
  short::choose short || return 1
  same "$chosen" 1
  lease::enter() { lease_news=1 lease_load[1]=1 gpus_load[1]=1; } # meanwhile somebody has started there
  lease::leave() { :; }
  lease::write() { :; }
  ! admit::secure short "$run/sessions/short/attempt-2" || same "$chosen" 'none: each has somebody'
  same "$wait_for" lease
}

started() { # <session> <attempt>
  mkdir -p "$run/sessions/$1/attempt-$2"
  attempt_of[$1]=$2 gpus_of[$1]=0 gpus_had[$1]=0
}

@test "a start that worked shortens the gap once, however it goes on" {
  policy[stagger_ms]=1000 stagger_ms=1000 spacing_doubled[0]=4
  started a 1
  starts::progressed a
  : >"$run/sessions/a/attempt-1/progressed"
  same "${spacing_doubled[0]}" 3
  starts::ended a 1 0 ''
  same "${spacing_doubled[0]}" 3
  started a 2
  starts::progressed a
  : >"$run/sessions/a/attempt-2/progressed"
  starts::ended a 2 0 crashed
  same "${spacing_doubled[0]}" 2
  started b 1
  outcome_of[b]=succeeded
  starts::ended b 1 0 '' # without a word of progress
  same "${spacing_doubled[0]}" 1
}

@test "one that was stopped before any progress has warmed nothing up, and tells nothing of the gap" {
  warm_up_ms=60000 stagger_ms=1000 spacing_doubled[0]=4
  started a 1
  warm::started a
  outcome_of[a]=cancelled
  starts::ended a 1 0 ''
  same "${warmed[all]-cold} ${spacing_doubled[0]}" 'cold 4'
  warm::started b
  same "${warm_by[all]}" b
  started b 1
  : >"$run/sessions/b/attempt-1/progressed"
  outcome_of[b]=cancelled
  starts::ended b 1 0 ''
  same "${warmed[all]-cold}" 1
}

promised_by() { # <run> <last line> : a file of that run, whose dispatcher is this process
  local state start boot
  process::look $$
  process::boot
  mkdir -p "$lease_directory"
  printf 'comborun-leases 1\nrun=%s user=ada dispatcher=%s start=%s boot=%s\n%s' "$1" $$ "$start" "$boot" "$2" \
    >"$lease_directory/$1.lease"
}

@test "on a full disk a lease stays as it was, and is written when there is room" {
  local who file=$lease_directory/$run_id.lease before after
  mkdir -p "$lease_directory"
  for who in a b; do request::read "$who" 0 0 1; done
  promise::take a '' "$run/sessions/a/attempt-1"
  lease::open && lease::write
  same "$lease_stale" 0
  mapfile -t before <"$file"
  promise::take b '' "$run/sessions/b/$(printf '%01500d' 0)" # more than a limit of one block lets through
  (
    trap '' XFSZ
    ulimit -f 1
    ! lease::write && ((lease_stale))
  )
  mapfile -t after <"$file"
  same "${after[*]}" "${before[*]}"
  lease::flush
  mapfile -t after <"$file"
  same "${#after[@]} ${after[-1]} $lease_stale" '5 . 0'
  same "$(ls -A "$lease_directory")" "$run_id.lease"$'\n'lock
}

@test "what a living run has promised and nobody can read to its end is no free room" {
  local wait_for='' wait_why=''
  gpus::allow 0 2
  request::read a 1 0
  promised_by other $'env_a\t0\t1000\t0'
  ! admit::secure a "$run/sessions/a/attempt-1" || same started 'not at all'
  same "$wait_for $wait_why" "lease what the run other has promised can't be read to its end"
  same "$lease_fd" ''
  promise::take b 0 "$run/sessions/b/attempt-1"
  lease::flush # it may tell its own all the same: two of them would wait for each other
  [[ -e $lease_directory/$run_id.lease ]]
  promised_by other $'.\n'
  lease::enter
  lease::leave
}

asks() { # <how often> <seconds of the process> : how often a GPU with one session is measured, looked at every second
  local i before=$measure_number
  clock::now_ms() { now_ms=$clock_ms; }
  for ((i = 0; i < $2; i++)); do
    clock_ms=$((clock_ms + 1000)) measure_pid=''
    give_way::look
  done
  same "$((measure_number - before))" "$1"
}

@test "a GPU with one session is looked at now and then, and soon again when nothing is known of it" {
  measure::ask() { measure_number=$((measure_number + 1)) measure_asked_ms=$clock_ms; }
  local clock_ms=1000000
  gpus::allow 0,1 2
  policy[give_way_ms]=30000
  give_way::open
  asks 0 200
  request::read a 1 0
  promise::take a 0
  room_others=([0]=0 [1]=0)
  asks 3 130
  room_others=([0]='' [1]='')
  asks 3 30
  room_others=([0]=5000 [1]=0)
  asks 3 30
}

queued() { # <session> <columns of queue.tsv from the fourth on>
  life_of[$1]=queued attempt_of[$1]=0 order+=("$1")
  queue::ask "$1" 1 "$2"
}

@test "those that ask no server need not wait for a GPU on which a server has been given up" {
  local candidate chosen next=0 columns=$'1000\t0\t0\t-\t-\t0\t0\t-\t'
  source_library queue
  gpus::allow 0,1 1
  gpu_total=([0]=10000 [1]=10000) gpu_used=([0]=0 [1]=0) gpu_told=([0]=1 [1]=1)
  room_others=([0]=0 [1]=0)
  clock::now_ms
  measure_told_ms=$now_ms
  server_names=(tiny-gpu0 tiny-gpu1) server_kind=([tiny-gpu0]=tiny [tiny-gpu1]=tiny)
  server_gpu=([tiny-gpu0]=0 [tiny-gpu1]=1) server_life=([tiny-gpu0]=ready [tiny-gpu1]=idle)
  queued x0 "$columns"tiny
  queued x1 "$columns"tiny
  queued y1 "$columns"-
  kinds_of=([x0]=tiny [x1]=tiny)
  queue::uncount x0
  life_of[x0]=running
  promise::take x0 0
  pass_left=([${kind_of[x1]}]=0) # it has been passed often enough
  passing::round
  launch::pick || return 1
  same "$candidate $chosen" 'y1 1'
  same "${refused[*]}" x1
}

two_servers() { # <MiB of the first, which is ready> : the second waits for what is left of 10000
  source_library queue servers_start servers_tend
  local name
  hold='' gpu_total[0]=10000 gpu_used[0]=0 gpu_told[0]=1 room_others[0]=0
  gpus::allow 0 8
  server_names=(first second)
  for name in "${server_names[@]}"; do server_kind[$name]=$name server_gpu[$name]='' server_at[$name]=0 server_restarts[$name]=3; done
  request::read first 1 "$1"
  request::read second 1 6000
  promise::take first 0
  server_life=([first]=ready [second]=idle)
  queued runs $'3500\t0\t0\t-\t-\t0\t0\t-\tfirst'
  queued waits $'500\t0\t0\t-\t-\t0\t0\t-\tfirst'
  queued plain $'500\t0\t0\t-\t-\t0\t0\t-\t-'
  kinds_of=([runs]=first [waits]=first)
  life_of[runs]=running busy=1
  promise::take runs 0
  clock::now_ms
  measure_told_ms=$now_ms
  servers::start second || return
  same "$servers_waiting" second
}

@test "a server gets the room that clients of another one leave" {
  two_servers 1000
  servers::hold_back plain
  servers::hold_back waits
  gpus::allow 0,1 8
  asked_only[${kind_of[waits]}]=1 # where the server does not look for room
  asked_only[${kind_of[second]}]=0
  ! servers::hold_back waits || same waits 'for nothing'
}

@test "who would end a server that is in the way of another one need not wait for that" {
  two_servers 5000
  servers::hold_back plain
  ! servers::hold_back waits || same waits 'for ever'
}

@test "with nothing that runs, no client waits for the room of another server" {
  two_servers 1000
  busy=0
  servers_waiting=''
  servers::start second
  same "$servers_waiting" second
  ! servers::hold_back waits || same waits 'for ever'
}

@test "what other runs hold is known from the first answer on, and a full GPU is looked at as often as it has to make room" {
  gpus::allow 0 4
  lease::read() { lease_held=([0]=3000) lease_mib=([0]=3000) lease_load=([0]=1); }
  measure::heard() { gpu_used=([0]=3000) gpu_total=([0]=10000) gpu_told=([0]=1); }
  lease_start=''
  admit::measured 1
  same "${room_others[0]}" 0
  measure::again() { asked=$1; }
  local asked=''
  give_way_ms=2000 gpus_load[0]=2 full_ms=([0]=5)
  give_way::look
  same "$asked" 2000
}

@test "a single GPU is asked for in the singular" {
  gpus::allow 0 1
  local why
  request::read asks 1 0 0 0 '' '' 0 0 7
  admit::never "${kind_of[asks]}" || return 1
  same "$why" 'it asks for 1 GPU of 7, and may use 0'
}
