# shellcheck shell=bash
# publish.sh: put a run directory there whole, or find the run that is already there. The laptop sends this text with
# calls behind it: publish::begin, publish::file for each file, publish::commit. Standard output answers `key=value`.
set -uo pipefail
umask 022

publish::die() { # <exit code> <message>
  printf 'publish: %s\n' "$2" >&2
  exit "$1"
}

publish::begin() { # <root> <grid name> <digest> <resume|new>
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

publish::file() { # <path below the run> <mode> <text>
  local path=$publish_incoming/$1
  [[ -d ${path%/*} ]] || mkdir -p -- "${path%/*}" || publish::die 73 "can't make ${path%/*}"
  printf '%s' "$3" >"$path" || publish::die 74 "can't write $path: is the disk full?"
  [[ $2 == 755 ]] && publish_programs+=("$path")
  return 0
}
publish_programs=()

publish::commit() { # under the root's lock: resume the run of this grid, or rename the new one into place
  ((${#publish_programs[@]})) && { chmod 755 -- "${publish_programs[@]}" || publish::die 74 "can't set modes"; }
  exec 9>>"$publish_root/.lock"
  flock -w 30 9 || publish::die 75 "another launch holds $publish_root/.lock"
  local newest state=new
  newest=$(publish::newest)
  if [[ $newest && $publish_mode == resume ]]; then
    state=$(publish::state "$newest")
  fi
  case $state in
    resumed | finished | changed) printf 'state=%s\nrun=%s\ndirectory=%s\n' "$state" "${newest##*/}" "$newest" ;;
    new) publish::place ;;
  esac
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

publish::state() { # <run directory> -> resumed, finished, changed, or new
  local key value digest='' again=0 over=0
  while IFS='=' read -r key value; do [[ $key == digest ]] && digest=$value; done <"$1/digest"
  if [[ -f $1/dispatch/done ]]; then
    over=1
    while IFS='=' read -r key value; do
      [[ $key == @(lost|cancelled) && $value != 0 ]] && again=1
    done <"$1/dispatch/done"
  fi
  if [[ $digest == "$publish_digest" ]]; then
    ((over && !again)) && printf finished || printf resumed
  else
    ((over)) && printf new || printf changed
  fi
}

publish::place() { # rename the incoming directory to a new id
  local id
  for _ in 1 2 3 4 5 6 7 8; do
    TZ=UTC0 printf -v id '%s-%(%Y%m%dT%H%M%SZ)T-%04x' "$publish_name" -1 "$(((RANDOM << 15 | RANDOM) % 65536))"
    [[ -e $publish_root/$id ]] || break
  done
  printf '%s\n' "$id" >"$publish_incoming/id" || publish::die 74 "can't write the id: is the disk full?"
  printf 'digest=%s\n' "$publish_digest" >"$publish_incoming/digest" || publish::die 74 "can't write the digest"
  sync -- "$publish_incoming" 2>/dev/null
  mv -T -- "$publish_incoming" "$publish_root/$id" || publish::die 74 "can't rename the new run into place"
  trap - EXIT
  printf 'state=new\nrun=%s\ndirectory=%s\n' "$id" "$publish_root/$id"
}
