# shellcheck shell=bash
# shellcheck disable=SC2154 # publish.sh, which is sent in front of this, begins it
# amend.sh: put an amendment into the run directory that it was made for: publish::begin, publish::file for each file,
# amend::commit. Killed at any point, the run works by its old plan or by its new one, and the same launch does the rest:
# the digest comes last and says that the amendment is whole. Standard output answers `key=value`.

amend::commit() { # <run directory> <its digest> <number of its newest plan> <new sessions> <1 with `after`> <dropped>...
  local run=$1 digest number added=$4 after=$5
  publish::lock
  publish::read "$run"
  if [[ $digest != "$2" || $number != "$3" ]]; then
    printf 'state=overtaken\n'
    return
  fi
  shift 5
  amend::sessions
  ((after)) || rm -f -- "$run/sessions/after/session.sh" || publish::die 73 "can't write in $run/sessions"
  ((added == 0)) || rm -f -- "$run/dispatch/done" || publish::die 73 "can't write in $run/dispatch"
  # shellcheck disable=SC2046 # the names are our own
  amend::move $(cd -- "$publish_incoming" && printf '%s\n' plan-*.json grid-*.yaml)
  amend::move dispatch/servers.tsv dispatch/secrets.tsv dispatch/notify.sh dispatch/queue.tsv dispatch/policy.tsv
  # shellcheck disable=SC2046 # the same
  amend::move dispatch/slurm.tsv dispatch/slurm.sessions dispatch/slurm.options \
    $(cd -- "$publish_incoming" && printf '%s\n' slurm/*.sh)
  printf 'digest=%s\n' "$publish_digest" >"$publish_incoming/digest" || publish::die 74 "can't write the digest"
  amend::move digest
  [[ -p $run/dispatch/fifo ]] && printf 'reread run 0\n' 1<>"$run/dispatch/fifo"
  printf 'state=amended\n'
  amend::running "$@"
}

amend::sessions() { # their folders come first: nothing names them yet
  local script
  for script in "$publish_incoming"/{servers,sessions}/*/session.sh; do
    [[ -e $script ]] || continue
    script=${script#"$publish_incoming"/}
    mkdir -p -- "$run/${script%/*}" || publish::die 73 "can't make $run/${script%/*}"
    amend::move "$script"
  done
}

amend::move() { # <file below the run>... : those that were sent, each whole or not at all
  local file
  for file in "$@"; do
    [[ -e $publish_incoming/$file ]] || continue
    sync -- "$publish_incoming/$file" 2>/dev/null
    mv -fT -- "$publish_incoming/$file" "$run/$file" || publish::die 74 "can't write $run/$file: is the disk full?"
  done
}

amend::running() { # <session>... : those of them that run
  local name names=()
  for name in "$@"; do
    [[ -e $run/sessions/$name/lock ]] || continue
    flock -n -s "$run/sessions/$name/lock" true || names+=("$name")
  done
  printf 'running=%s\n' "${names[*]}"
}
