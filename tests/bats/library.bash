# What the bats files share: the library under test, and a folder of their own.

library=$BATS_TEST_DIRNAME/../../scripts/lib

source_library() { # <file>... : each is on top, or in the one room that has it
  local file place found
  for file in "$@"; do
    found=()
    for place in "$library/$file".sh "$library"/*/"$file".sh; do [[ ! -e $place ]] || found+=("$place"); done
    same "${#found[@]} $file.sh" "1 $file.sh" || return
    # shellcheck source=/dev/null
    source "${found[0]}"
  done
}

same() { # <actual> <expected>
  [[ $1 == "$2" ]] || {
    printf 'actual:   %q\nexpected: %q\n' "$1" "$2" >&2
    return 1
  }
}
