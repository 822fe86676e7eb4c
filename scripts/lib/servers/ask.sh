#!/usr/bin/env bash
# ask.sh PORT [METHOD PATH [TYPE [BODY]]]: ask a server of this machine one thing over HTTP, and print the whole answer; with
# a port alone only whether something takes connections there. It needs no curl, and has no limit of its own in time.
#
#   0: it took the connection (and answered)    1: it did not
set -uo pipefail

ask::main() { # <port> [method] [path] [type] [body]
  local body=${5-} LC_ALL=C
  { exec 3<>"/dev/tcp/127.0.0.1/$1"; } 2>/dev/null || exit 1
  (($# > 1)) || exit 0
  {
    printf '%s %s HTTP/1.1\r\nHost: 127.0.0.1:%s\r\nConnection: close\r\n' "$2" "$3" "$1"
    [[ ! $body ]] || printf 'Content-Type: %s\r\nContent-Length: %d\r\n' "${4:-application/json}" "${#body}"
    printf '\r\n%s' "$body"
  } >&3 2>/dev/null || exit 1
  exec cat <&3
}

ask::main "$@"
