# What the bats files share: the library under test, and a folder of their own.

library=$BATS_TEST_DIRNAME/../../scripts/lib

source_library() { # <file>...
  local file
  for file in "$@"; do
    # shellcheck source=/dev/null
    source "$library/$file.sh"
  done
}

same() { # <actual> <expected>
  [[ $1 == "$2" ]] || {
    printf 'actual:   %q\nexpected: %q\n' "$1" "$2" >&2
    return 1
  }
}
