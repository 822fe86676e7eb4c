# shellcheck shell=bash
# shellcheck disable=SC2154 # values are handed on through variables that the callers name
# decided.sh: what was decided early, and sessions that need not begin any more. To be sourced by control.sh.
# Safe to repeat, by several at once, and after being killed anywhere: what has begun goes on, what has ended stays.

control::decided() { # <name>... ; standard input: a line per decision
  local name
  for name in "$@"; do
    [[ $name =~ ^[A-Za-z0-9_-]+$ && -d $run/sessions/$name ]] || control::die 64 "there is no session $name"
  done
  control::write_decided || control::die 73 "can't write in $run/dispatch"
  for name in "$@"; do control::not_needed "$name"; done
  return 0
}

control::write_decided() { # the lines that are not there yet, behind those that are
  local file=$run/dispatch/decided line='' fd
  local -A there=()
  exec {fd}>>"$run/dispatch/.decided.lock" && flock -w 30 "$fd" || return
  while IFS= read -r line; do [[ ! $line ]] || there[$line]=1; done 2>/dev/null <"$file"
  [[ ! $line ]] || printf '\n' >>"$file" || return # one that a full disk has cut off
  while IFS= read -r line; do
    [[ $line && ! ${there[$line]-} ]] || continue
    there[$line]=1
    printf '%s\n' "$line" >>"$file" || return
    printf '%s\n' "$line"
  done
  exec {fd}>&-
}

control::not_needed() { # <session> : it ends before it begins, or waits for another attempt no more
  local attempt life=queued
  attempt::latest "$1"
  ((attempt)) && attempt::look "$1" "$attempt"
  if [[ $life == ended ]]; then
    retry::pending "$1" "$attempt" || return 0
    life=queued
  fi
  [[ $life == queued ]] || return 0
  attempt=$((attempt + 1))
  attempt::forestall "$1" "$attempt" not_needed 'all that it is compared for is decided' || return 0
  control::tell "ended $1 $attempt"
  printf '%s: not needed any more\n' "$1"
}
