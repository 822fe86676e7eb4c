# What the bats files share: the library under test, and a folder of their own.

library=$BATS_TEST_DIRNAME/../../scripts/lib

source_library() { # <file>...
  local file place
  for file in "$@"; do
    for place in "$library/$file".sh "$library"/*/"$file".sh; do # on top, or in the one room that has it
      # shellcheck source=/dev/null
      [[ ! -e $place ]] || source "$place"
    done
  done
}

same() { # <actual> <expected>
  [[ $1 == "$2" ]] || {
    printf 'actual:   %q\nexpected: %q\n' "$1" "$2" >&2
    return 1
  }
}
