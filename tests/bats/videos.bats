#!/usr/bin/env bats
# videos.sh: which videos are listed, whatever their names are.

# shellcheck disable=SC2016,SC2034,SC2154 # literal dollars are meant; values come through variables
load library

setup() {
  source_library record evidence attempt end videos
  at=$BATS_TEST_TMPDIR/attempt-1
  mkdir -p "$at/out"
  cd "$BATS_TEST_TMPDIR" || return
  printf 'video=*.mp4\n' >"$at/claim"
}

judge() { # as a supervisor does, for which a name that is unset is the end
  set -u
  local records successes completeness flaws
  end::judge "$at" 0
  printf '%s\n' "$flaws"
}

@test "a video whose name no line can hold is told, and the others are listed" {
  printf x >"$at/out/one of them.mp4"
  printf x >"$at/out/"$'rollout_pick up the cup\nand place it.mp4'
  printf x >"$at/out/"$'with a\ttab.mp4'
  : >"$at/out/"$'nothing\n in it.mp4'
  same "$(judge)" ' 3 of its videos are not listed: a line break or TAB is in their names'
  same "$(<"$at/videos.tsv")" $'1\tno_mp4\tout/one of them.mp4'
}

@test "no name of a video is run as a command" {
  printf x >"$at/out/"$'a\na[$(touch pwned)] 2.mp4'
  printf x >"$at/out/"$'0\n1 at[$(touch pwned)].mp4'
  printf x >"$at/out/"'a[$(touch pwned)].mp4'
  same "$(judge)" ' 2 of its videos are not listed: a line break or TAB is in their names'
  same "$(<"$at/videos.tsv")" $'1\tno_mp4\tout/a[$(touch pwned)].mp4'
  [[ ! -e pwned ]]
}
