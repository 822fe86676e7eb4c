# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# serving.sh: where the model servers of a run are, a line of the probe's header each. To be sourced by probe.sh,
# where a run has any.

probe::servers() {
  local name family=servers
  while IFS=$'\t' read -r name _; do
    [[ ! $name =~ ^[a-z0-9-]+$ ]] || probe::server "$name"
  done 2>/dev/null <dispatch/servers.tsv
}

probe::server() { # <name>
  local attempt life=queued state=queued since='' gpus='' port='' cause='' why='' at
  attempt::latest "$1"
  at=servers/$1/attempt-$attempt
  ((attempt == 0)) || attempt::glance "$at"
  case $life in
    queued) ;;
    starting) state=starting ;;
    ended | lost)
      state=ended since=${record[ended]-} cause=${record[cause]-lost} why=${record[note]-}
      ;;
    *)
      state=loading since=${record[started]-} gpus=${record[gpus]-} port=${record[port]-}
      if [[ -e $at/unhealthy ]] && record::read "$at/unhealthy"; then
        state=silent since=${record[since]-}
      elif record::read "$at/ready"; then
        state=ready since=${record[at]-}
      fi
      ;;
  esac
  printf 'server name=%s attempt=%s state=%s since=%s gpus=%s port=%s cause=%s why=%s\n' \
    "$1" "$attempt" "$state" "$since" "$gpus" "$port" "$cause" "$why"
}
