#!/usr/bin/env bats
# pick.sh, starts.sh, warm.sh, spacing.sh: whom a look at the queue looks at. A queue of thousands that waits for one thing
# must not be gone through again and again.

# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2154,SC2317 # stand-ins are called from the library; each test has a shell of its own; values come through variables
load library

setup() {
  source_library record clock hold request gpus spacing warm starts queue pick passing launch ahead waiting
  run=$BATS_TEST_TMPDIR run_id=bench-20260101T000000Z-9f3c
  mkdir -p "$run/dispatch"
  declare -gA short_of=() policy=() client_of=() retry_why=() retry_at_ms=()
  stagger_ms=0 warm_up_ms=0 smoke_on=0 slots=8 busy=1 hold='' server_names=()
  clock_ms=1000000 clock_reads=0 looked=() chosen_of=()
  clock::now_ms() { now_ms=$clock_ms clock_reads=$((clock_reads + 1)); }
}

dispatch::journal() { :; }
short::forget() { :; }
smoke::holds_back() { false; }
admit::never() { false; }
admit::choose() { chosen=''; }
mux::start() { chosen_of+=("$1") mux_client=1; }

waits() { # <session> [GPUs] [program]
  queue::reset "$1" "${2:-0}"
  order+=("$1")
  request::read "$1" "${2:-0}" 100
  [[ ! ${3-} ]] || program_of[$1]=$3
  queue::wait_for_slot "$1"
}

round() { # -> what is picked in a new round, `nobody` for none; looked: at whom it looked
  local candidate=nobody chosen now_ms
  looked=() launch_nobody=0 pause_ms=2000 clock_reads=0
  clock::now_ms
  round_ms=$now_ms
  passing::round
  starts::round
  launch::pick || candidate=nobody
  picked=$candidate
}

spy() { # from now on `looked` tells
  eval "spied_$(declare -f launch::held_back)"
  launch::held_back() {
    looked+=("$1")
    spied_launch::held_back "$@"
  }
}

starts() { # <session>
  queue::leave "$1"
  life_of[$1]=running
  starts::begun "$1" "${2-}"
}

@test "while the host's stagger holds one session is looked at, and the clock is read once" {
  local i
  stagger_ms=5000
  for i in {1..50}; do waits "s$i"; done
  spy
  round
  same "$picked ${looked[*]}" 's1 s1'
  starts s1
  round
  same "$picked ${looked[*]} $clock_reads" 'nobody s2 1'
  same "$waiting_stagger $pause_ms" 's2 2000'
  looked=()
  ahead::fill
  same "${looked[*]}${chosen_of[*]}" ''
  clock_ms=$((clock_ms + 4000))
  round
  same "$picked $pause_ms" 'nobody 1010'
  clock_ms=$((clock_ms + 1010))
  round
  same "$picked" s2
}

@test "a session with a GPU is found behind those that wait for the host's stagger" {
  stagger_ms=5000
  waits a
  waits b
  waits with_gpu 1
  round
  starts a
  round
  same "$picked" with_gpu
}

@test "while all wait for the warm-up of their program nobody is looked at" {
  local i text='' lines
  warm_up_ms=60000
  for i in {1..50}; do waits "s$i" 0 p; done
  spy
  round
  starts s1
  round
  same "$picked/${looked[*]}/$clock_reads" 'nobody//1'
  ahead::fill
  same "${looked[*]}${chosen_of[*]}" ''
  starts::tell
  mapfile -t lines <<<"${text%$'\n'}"
  same "${#lines[@]} ${lines[0]}" $'49 s2\twarm_up\t\ts1 of the same program comes first, until it makes progress'
  warm::reached s1 'it makes progress'
  round
  same "$picked" s2
}

@test "those of another program are found behind those that wait for a warm-up, each time" {
  local i
  warm_up_ms=60000
  for i in {1..5}; do waits "s$i" 0 p; done
  for i in {1..5}; do waits "t$i" 0 q; done
  starts s1
  round
  same "$picked" t1
  starts t1
  round
  same "$picked" nobody
  warm::failed t1
  life_of[t1]=ended
  round
  same "$picked" t2
  warm::reached s1 'it makes progress'
  round
  same "$picked" s2
}

@test "a warm-up that takes too long is over, and the pause ends when it is" {
  warm_up_ms=1500
  waits a
  waits b
  starts a
  round
  same "$picked $pause_ms" 'nobody 1500'
  clock_ms=$((clock_ms + 1500))
  round
  same "$picked" b
}

@test "when all are held back, one by one, windows are not looked for again" {
  local i
  for i in {1..5}; do
    waits "s$i"
    retry_at_ms[s$i]=$((clock_ms + 60000))
  done
  spy
  round
  same "$picked ${#looked[@]}" 'nobody 5'
  ahead::fill
  same "${#looked[@]} ${#chosen_of[@]}" '5 0'
  retry_at_ms[s3]=$clock_ms
  round
  same "$picked" s3
}

@test "what is queued is counted by program, also when an amended grid says another" {
  waits a 0 p
  waits b 0 p
  same "${queued_program[p]-0}" 2
  queue::ask a 0 $'-\t0\t0\t0\t-\t-\t0\t0\t-\tq'
  same "${queued_program[p]-0}/${queued_program[q]-0}" 1/1
  queue::leave b
  same "${queued_program[p]-0}/${queued_program[q]-0}" 0/1
}
