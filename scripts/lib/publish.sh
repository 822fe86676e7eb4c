# shellcheck shell=bash
# publish.sh: put a run directory there whole, or find the run that is already there. The laptop sends this text with
# calls behind it: publish::begin, publish::file for each file, publish::commit. Standard output answers `key=value`.
set -uo pipefail
umask 022

publish::die() { # <exit code> <message>
  printf 'publish: %s\n' "$2" >&2
  exit "$1"
}

publish::begin() { # <root> <grid name> <digest> <resume|new|after:RUN> : `after` makes a new run unless RUN has a successor
  local root=$1
  [[ $root == [~] || $root == [~]/* ]] && root=$HOME${root:1}
  publish_name=$2 publish_digest=$3 publish_mode=$4
  mkdir -p -- "$root/.incoming" || publish::die 73 "can't make the folder $root"
  publish_root=$(cd -- "$root" && pwd -P) || publish::die 73 "can't enter the folder $root"
  publish::tidy
  publish_incoming=$(mktemp -d "$publish_root/.incoming/XXXXXXXX") || publish::die 73 "can't write below $publish_root"
  trap 'rm -rf -- "$publish_incoming"' EXIT
}

publish::tidy() { # what launches that were killed more than a day ago have left
  local directory reference=$publish_root/.incoming/.yesterday
  touch -d '1 day ago' -- "$reference" 2>/dev/null || return 0
  for directory in "$publish_root/.incoming"/*/; do
    [[ -d $directory && $directory -ot $reference ]] && rm -rf -- "$directory"
  done
  rm -f -- "$reference"
}

publish::folders() { # <path below the run>... : all at once: a process for each would take longer than everything else
  (cd -- "$publish_incoming" && mkdir -p -- "$@") || publish::die 73 "can't make folders below $publish_root"
}

publish::file() { # <path below the run> <mode> <text>
  local path=$publish_incoming/$1
  [[ -d ${path%/*} ]] || mkdir -p -- "${path%/*}" || publish::die 73 "can't make ${path%/*}"
  printf '%s' "$3" >"$path" || publish::die 74 "can't write $path: is the disk full?"
  [[ $2 == 755 ]] && publish_programs+=("$path")
  return 0
}
publish_programs=()

publish::lock() { # the root's, until this ends; what was sent is in order
  ((${#publish_programs[@]})) && { chmod 755 -- "${publish_programs[@]}" || publish::die 74 "can't set modes"; }
  exec 9>>"$publish_root/.lock"
  flock -w 30 9 || publish::die 75 "another launch holds $publish_root/.lock"
}

publish::commit() { # under the root's lock: tell of the run of this grid, or rename the new one into place
  publish::lock
  local newest
  newest=$(publish::newest)
  if [[ $newest && $publish_mode != new && $publish_mode != "after:${newest##*/}" ]]; then
    publish::tell "$newest"
  else
    publish::place
  fi
}

publish::tell() { # <run directory> : what is there: fields, an empty line, its newest plan
  local number digest whole=0 ended=0 held=0 hold='' why='' state=changed attempt started=()
  publish::read "$1"
  publish::ended "$1"
  [[ $digest == "$publish_digest" ]] && state=resumed && ((whole)) && state=finished
  for attempt in "$1"/sessions/*/attempt-1; do # a bare folder belongs to a window that waits for its slot
    [[ -e $attempt/grant || -e $attempt/claim || -e $attempt/end ]] || continue
    attempt=${attempt%/*}
    started+=("${attempt##*/}")
  done
  publish::held "$1"
  printf '%s\n' "state=$state" "run=${1##*/}" "directory=$1" "number=$number" "digest=$digest" "ended=$ended" \
    "whole=$whole" "held=$held" "hold=$hold" "why=$why" "started=${started[*]}" ''
  cat -- "$1/plan-$number.json" || publish::die 74 "can't read $1/plan-$number.json"
}

publish::held() { # <run directory> -> held hold why: what keeps it from going on
  local line
  [[ -e $1/dispatch/quarantine ]] && held=1
  [[ -e $1/dispatch/hold ]] || return 0
  held=1
  while IFS= read -r line || [[ $line ]]; do
    case $line in
      kind=*) hold=${line#kind=} ;;
      why=*) why=${line#why=} ;;
    esac
  done <"$1/dispatch/hold"
}

publish::newest() { # -> the newest run directory of this grid, or nothing; ids sort by time
  local directory newest=''
  local stamp='^-[0-9]{8}T[0-9]{6}Z-[0-9a-f]{4}$'
  for directory in "$publish_root/$publish_name"-*; do
    local tail=${directory#"$publish_root/$publish_name"}
    [[ $tail =~ $stamp && -f $directory/run.json ]] && newest=$directory
  done
  printf '%s' "$newest"
}

publish::read() { # <run directory> -> digest; number of its newest plan
  local key value plan
  digest='' number=0
  while IFS='=' read -r key value; do [[ $key == digest ]] && digest=$value; done <"$1/digest"
  for plan in "$1"/plan-*.json; do
    plan=${plan##*/plan-} plan=${plan%.json}
    [[ $plan =~ ^[1-9][0-9]{0,8}$ ]] && ((plan > number)) && number=$plan
  done
  return 0
}

publish::ended() { # <run directory> -> ended: 1 when nothing starts there any more; whole: 1 when it had nothing to resume
  local key value
  [[ -f $1/dispatch/stopped ]] && ended=1
  [[ -f $1/dispatch/done ]] || return 0
  ended=1 whole=1
  while IFS='=' read -r key value; do
    [[ $key == @(lost|cancelled) && $value != 0 ]] && whole=0
  done <"$1/dispatch/done"
  return 0
}

publish::place() { # rename the incoming directory to a new id, behind that of a run made in the same second
  local id newest
  newest=$(publish::newest)
  for _ in {1..64}; do
    TZ=UTC0 printf -v id '%s-%(%Y%m%dT%H%M%SZ)T-%04x' "$publish_name" -1 "$(((RANDOM << 15 | RANDOM) % 65536))"
    [[ ! -e $publish_root/$id && $id > ${newest##*/} ]] && break
  done
  printf '%s\n' "$id" >"$publish_incoming/id" || publish::die 74 "can't write the id: is the disk full?"
  printf 'digest=%s\n' "$publish_digest" >"$publish_incoming/digest" || publish::die 74 "can't write the digest"
  sync -- "$publish_incoming" 2>/dev/null
  mv -T -- "$publish_incoming" "$publish_root/$id" || publish::die 74 "can't rename the new run into place"
  trap - EXIT
  printf 'state=new\nrun=%s\ndirectory=%s\n' "$id" "$publish_root/$id"
}
