#!/usr/bin/env bash
# notify: hands one notice, a JSON object on standard input, to the grid's own command
workdir="$HOME"/tell
variables=(
  A='b c'
)
source "${0%notify.sh}../lib/hook.sh"
command=(
  curl
  -d @- 'https://example.org/a?b=c'
)
hook::run
