#!/usr/bin/env bats
# driver.sh: questions to the driver of the GPUs, and a driver that hangs. Every test has a stand-in for nvidia-smi.

# shellcheck disable=SC2016,SC2034,SC2154 # literal dollars are meant; values come through variables
load library

setup() {
  source_library record driver
  cd "$BATS_TEST_TMPDIR" || return
  COMBORUN_GPU_S=1
  mkdir bin
  PATH=$PWD/bin:$PATH
  : >lock
}

stand_in() { # its text is on standard input
  {
    printf '#!/usr/bin/env bash\n# stand-in, not the real nvidia-smi\n'
    cat
  } >bin/nvidia-smi
  chmod +x bin/nvidia-smi
}

@test "an answer comes line by line, with the code of nvidia-smi" {
  local answer code=0
  stand_in <<<'printf "%s\n" "$@" ". no end of it"; exit 9'
  driver::ask lock --query-gpu=index -q
  driver::hear || code=$?
  same "$code" 9
  same "${answer[*]}" '--query-gpu=index -q . no end of it'
}

@test "nvidia-smi holds none of our descriptors" {
  local answer
  exec 7>held
  stand_in <<<'printf "%s\n" "/proc/$$/fd"/*'
  driver::ask '' -L
  driver::hear
  exec 7>&-
  [[ " ${answer[*]} " == *"/fd/0 "*"/fd/2 "* && " ${answer[*]} " != *"/fd/7 "* ]] || same "${answer[*]}" 'without 7'
}

@test "while what no signal reaches hangs, nobody waits for it, and no other is started" {
  local answer code=0 began=$SECONDS
  stand_in <<<'printf . >>asked; setsid sleep 30 >&2 & printf %s "$!" >hung; wait'
  driver::ask lock -L
  driver::hear || code=$?
  ((code)) || return 1
  code=0
  driver::ask lock -L
  driver::hear || code=$?
  kill "$(<hung)"
  ((code && ${#answer[@]} == 0)) || return 1
  same "$(<asked)" .
  ((SECONDS - began < 20))
}
