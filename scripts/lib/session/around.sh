# shellcheck shell=bash
# shellcheck source-path=SCRIPTDIR/..
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# around.sh: what is put around a session's command: files that it reads, a folder of links, ranks. To be sourced by
# session.sh, and only where the script asks for one of them. The container is in container.sh.

around::prepare() { # what its words may name, in the supervisor as in the command's process
  export COMBORUN_FILES=$session_at/files
  [[ ${ranks-} =~ ^[1-9][0-9]{0,5}$ ]] || ranks=1
  export COMBORUN_EPISODES_PER_RANK=$(((count + ranks - 1) / ranks))
  [[ ! ${threads-} ]] || around::threads
  [[ ! ${container-} ]] || source "$session_library/session/container.sh"
}

around::threads() { # each rank's share: all of them together have the session's cores
  threads=$((threads / ranks > 0 ? threads / ranks : 1))
  export COMBORUN_THREADS=$threads
}

around::enter() { # in the command's own process: files, then links
  [[ ! ${file_names+set} ]] || around::write
  [[ ! ${link_from-} ]] || around::link
}

around::write() { # reads file_names file_texts
  local i path=$COMBORUN_OUTPUT_DIR$COMBORUN_RESULTS_DIR
  mkdir -p -- "$COMBORUN_FILES" || command::refuse 73 "can't make $COMBORUN_FILES"
  for ((i = 0; i < ${#file_names[@]}; i++)); do
    [[ ${file_names[i]} == *.json && $path == *[\"\\]* ]] &&
      command::refuse 78 "the run's folder has a quote or a backslash in its name, and ${file_names[i]} is JSON"
    printf '%s' "${file_texts[i]-}" >"$COMBORUN_FILES/${file_names[i]}" ||
      command::refuse 73 "can't write $COMBORUN_FILES/${file_names[i]}"
  done
}

around::link() { # reads link_from link_exclude -> workdir: a folder of links to all entries, hidden ones too
  local entry pattern i entries=() from=${link_from%/}
  [[ -d ${from:-/} ]] || command::refuse 78 "there is no folder $link_from"
  workdir=$COMBORUN_OUTPUT_DIR/work
  mkdir -p -- "$workdir" || command::refuse 73 "can't make $workdir"
  shopt -s nullglob dotglob
  for entry in "$from"/*; do
    for pattern in "${link_exclude[@]}"; do
      # shellcheck disable=SC2053 # it is meant to be a pattern
      [[ ${entry##*/} == $pattern ]] && continue 2
    done
    entries+=("$entry")
  done
  shopt -u nullglob dotglob
  for ((i = 0; i < ${#entries[@]}; i += 500)); do # -f: a link that is there, of a start that was cut short, is made anew
    ln -sfn -t "$workdir" -- "${entries[@]:i:500}" || command::refuse 73 "can't make links in $workdir"
  done
  around::unlink_records
}

around::unlink_records() { # a file that is linked and looks like a record would be counted as one of this attempt's
  local files broken file old=()
  evidence::files "$COMBORUN_OUTPUT_DIR" "${results[@]}"
  for file in "${files[@]}"; do
    [[ -L $file && ${file%/*} == "$workdir" ]] && old+=("$file")
  done
  ((${#old[@]} == 0)) || rm -f -- "${old[@]}"
}
