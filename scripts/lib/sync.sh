# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154,SC2207 # values are handed on through variables; split at newlines on purpose
# sync.sh: put the user's own files on the host. The laptop sends this text with a call behind it: sync::look, and
# then sync::receive. Nothing is deleted, nothing is written through a link, and a file takes its place when whole.
set -uo pipefail

sync_drafts=() sync_files=() sync_sums=() # what has arrived under another name, where it belongs, what it must hold
declare -A sync_of_mode=()                # mode -> indexes of drafts
declare -A sync_way=()                    # folder -> why nothing can be put below it; empty when it can

sync::die() { # <exit code> <message>
  printf 'sync: %s\n' "$2" >&2
  exit "$1"
}

sync::folder() { # <folder as written> -> folder
  folder=$1
  [[ $folder == [~] || $folder == [~]/* ]] && folder=$HOME${folder:1}
  while [[ $folder == *?/ ]]; do folder=${folder%/}; done
}

sync::way() { # <path below folder> -> why; 1 when something is in the way of a file there
  local parent=$1 key
  why=''
  [[ $1 && $1 != /* && /$1/ != */../* ]] || sync::die 65 "the path $1 leads elsewhere"
  while [[ $parent == */* ]]; do
    parent=${parent%/*}
    key=$folder/$parent
    if [[ ! ${sync_way[$key]+known} ]]; then
      sync_way[$key]=''
      [[ -e $key && ! -d $key ]] && sync_way[$key]="$key is no folder"
      [[ -L $key ]] && sync_way[$key]="$key is a link, and nothing is written through it"
    fi
    [[ ${sync_way[$key]} ]] && why=${sync_way[$key]} && return 1
  done
  [[ -d $folder || ! -e $folder && ! -L $folder ]] || why="$folder is no folder"
  if [[ -d $folder/$1 && ! -L $folder/$1 ]]; then
    why="$folder/$1 is a folder"
  elif [[ -e $folder/$1 && ! -f $folder/$1 && ! -L $folder/$1 ]]; then
    why="$folder/$1 is no file"
  fi
  [[ ! $why ]]
}

sync::look() { # standard input: a folder, a count, so many paths below it; each ends with NUL -> what is at each path
  local folder count paths
  printf 'comborun-sync 1\0'
  while IFS= read -r -d '' folder && IFS= read -r -d '' count; do
    sync::folder "$folder"
    [[ $count =~ ^[0-9]{1,9}$ ]] || sync::die 65 "$count is no number of paths"
    mapfile -d '' -t -n "$count" paths
    ((${#paths[@]} == count)) || sync::die 65 'the list did not arrive whole'
    sync::look_below
  done
  printf 'over\0'
}

sync::look_below() { # - nothing    f MODE SHA256 a file    l TARGET a link    x WHY something that is in the way
  local i file why files=() at=() links=() link_at=() answers=() found=()
  for i in "${!paths[@]}"; do
    file=$folder/${paths[i]}
    answers[i]=-
    if ! sync::way "${paths[i]}"; then
      answers[i]="x $why"
    elif [[ -L $file ]]; then
      links+=("$file") link_at+=("$i")
    elif [[ -f $file && -r $file ]]; then
      files+=("$file") at+=("$i")
    fi
  done
  ((${#links[@]} == 0)) || mapfile -d '' -t found < <(readlink -z -- "${links[@]}")
  for i in "${!found[@]}"; do answers[link_at[i]]="l ${found[i]}"; done
  found=()
  sync::measure "${files[@]}"
  for i in "${!found[@]}"; do answers[at[i]]="f ${found[i]}"; done
  printf '%s\0' "${answers[@]}"
}

sync::measure() { # <file>... -> found: mode and sha256 of each
  local i modes=() sums=() IFS=$'\n'
  set -f
  for ((i = 1; i <= $#; i += 500)); do
    modes+=($(stat --printf '%a\n' -- "${@:i:500}"))
    sums+=($(sha256sum -- "${@:i:500}"))
  done
  set +f
  ((${#modes[@]} == $# && ${#sums[@]} == $#)) || sync::die 75 'files vanish while they are looked at'
  for i in "${!sums[@]}"; do
    sums[i]=${sums[i]#\\} # how its line begins when the name holds a newline
    found+=("${modes[i]} ${sums[i]::64}")
  done
}

sync::receive() { # <root of the runs> ; standard input: see remote/shipping/sync.py
  local word folder='' mode size sum path target why whole='' draft
  sync_umask=$(umask) sync_token=$$-$RANDOM
  umask 077
  trap sync::clear EXIT
  trap 'exit 143' HUP INT TERM
  exec 9>>"$1/.sync.lock" || sync::die 73 "can't write in $1"
  flock -w 60 9 || sync::die 75 "another launch holds $1/.sync.lock"
  while IFS= read -r -d '' word; do
    case $word in
      'folder '*) sync::folder "${word#* }" ;;
      'file '*) IFS=' ' read -r _ mode size sum <<<"$word" && IFS= read -r -d '' path && sync::file ;;
      link) IFS= read -r -d '' path && IFS= read -r -d '' target && sync::link ;;
      over) whole=1 && break ;;
    esac
  done
  [[ $whole ]] || sync::die 65 'what was sent did not arrive whole: nothing was changed'
  sync::verify
  sync::place
  printf 'placed=%s\n' "${#sync_files[@]}"
}

sync::draft() { # -> draft: a name beside the file; under the lock, what an interrupted launch left there goes
  local directory stale
  sync::way "$path" || sync::die 77 "$why"
  draft=$folder/$path
  directory=${draft%/*}
  if [[ ! ${sync_clean[$directory]-} ]]; then
    (umask "$sync_umask" && mkdir -p -- "$directory") || sync::die 73 "can't make the folder $directory"
    for stale in "$directory"/.comborun-sync-*; do
      [[ -e $stale || -L $stale ]] && rm -f -- "$stale"
    done
    sync_clean[$directory]=1
  fi
  sync_files+=("$draft")
  draft=$directory/.comborun-sync-$sync_token-${#sync_files[@]}
  sync_drafts+=("$draft")
}
declare -A sync_clean=()

sync::file() { # mode size sum path: so many bytes follow
  [[ $size =~ ^[0-9]{1,18}$ ]] || sync::die 65 "$size is no size of a file"
  sync::draft
  : >"$draft" || sync::die 74 "can't write in ${draft%/*}"
  ((size == 0)) || head -c "$size" >"$draft" || sync::die 74 "can't write $folder/$path: is the disk full?"
  sync_sums+=("$sum")
  [[ $mode =~ ^[0-7]{3}$ ]] || sync::die 65 "the mode $mode is none"
  sync_of_mode[$mode]+=" $((${#sync_drafts[@]} - 1))"
}

sync::link() { # path target
  sync::draft
  sync_sums+=('')
  ln -s -- "$target" "$draft" || sync::die 74 "can't make the link $folder/$path"
}

sync::verify() { # every byte, before anything takes its place
  local i j sums drafts=() wanted=() IFS=$'\n'
  for i in "${!sync_drafts[@]}"; do
    [[ ${sync_sums[i]} ]] && drafts+=("${sync_drafts[i]}") wanted+=("${sync_sums[i]}")
  done
  set -f
  for ((i = 0; i < ${#drafts[@]}; i += 500)); do
    sums=($(sha256sum -- "${drafts[@]:i:500}"))
    for ((j = 0; j < 500 && i + j < ${#drafts[@]}; j++)); do
      sum=${sums[j]-}
      sum=${sum#\\}
      [[ ${sum::64} == "${wanted[i + j]}" ]] || sync::die 76 'what arrived is not what was sent: nothing was changed'
    done
  done
  set +f
}

sync::place() {
  local i mode drafts
  for mode in "${!sync_of_mode[@]}"; do
    drafts=()
    for i in ${sync_of_mode[$mode]}; do drafts+=("${sync_drafts[i]}"); done
    sync::by_500 chmod "$mode" "${drafts[@]}" || sync::die 74 "can't set modes"
  done
  for i in "${!sync_drafts[@]}"; do
    mv -fT -- "${sync_drafts[i]}" "${sync_files[i]}" || sync::die 74 "can't put ${sync_files[i]} into its place"
  done
  sync_drafts=()
}

sync::by_500() { # <program> <argument> <file>... : no command line is too long
  local i
  for ((i = 3; i <= $#; i += 500)); do
    "$1" "$2" -- "${@:i:500}" || return
  done
}

sync::clear() { # what has not taken its place
  sync::by_500 rm -f "${sync_drafts[@]}"
}
