# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# container.sh: run a session's command in a container, and end that. To be sourced. A container of docker belongs to its
# daemon: its processes are no children of ours, and the death of the client ends nothing. So it has the session's name,
# which is written down before it starts, and goes by that name. Those of apptainer are our children like any others.

container::wrap() { # in the command's process -> command: as the runtime is told; reads command container container_*
  local words=("${command[@]}") name
  [[ $run != *:* ]] || command::refuse 78 "the run's folder has a colon in its name, which $container can't mount"
  if declare -F setup >/dev/null; then
    # shellcheck disable=SC2016 # for the bash in the container; $0 is the attempt's folder
    words=(bash -c "$(declare -f setup)"'
setup || { code=$?; printf "setup returned %s\n" "$code" >"$0/.failure"; exit 78; }
exec -- "$@"' "$session_at" "${words[@]}")
  fi
  case $container in
    docker) container::docker ;;
    apptainer) container::apptainer ;;
    *) command::refuse 78 "there is no runtime $container" ;;
  esac
  command+=("${container_options[@]}" "$container_image" "${words[@]}")
}

container::docker() {
  local uuids name=comborun-$run_id-${session_marker#"$run_id"/}
  name=${name//\//-}
  command=(docker run --rm --init "--name=$name" "--label=comborun=$session_marker" --network=host
    "--user=$UID:${GROUPS[0]}")
  [[ ! $session_gpus ]] || command+=("--gpus=\"device=$pin_visible\"")
  command+=("--volume=$run:$run")
  [[ ! ${link_from-} ]] || command+=("--volume=$link_from:$link_from")
  command+=("${container_mounts[@]/#/--volume=}")
  [[ ! ${workdir-} ]] || command+=("--workdir=$workdir")
  container::environment
  record::write "$session_at/container" "runtime=docker" "name=$name" || command::refuse 73 "can't write in $session_at"
}

container::environment() { # by name what is in ours, secrets among it, so that no command line shows a value of theirs
  local name
  secrets::wanted
  for name in "${!COMBORUN_@}" PYTHONUNBUFFERED CUDA_DEVICE_ORDER DISPLAY XAUTHORITY "${thread_variables[@]}" \
    "${secret_names[@]}"; do
    [[ -v $name ]] && command+=("--env=$name")
  done
  [[ ! ${variables+set} ]] || command+=("${variables[@]/#/--env=}")
}

container::apptainer() {
  command=(apptainer exec)
  [[ ! $session_gpus ]] || command+=(--nv)
  command+=("--bind=$run:$run")
  [[ ! ${link_from-} ]] || command+=("--bind=$link_from:$link_from")
  command+=("${container_mounts[@]/#/--bind=}")
  [[ ! ${workdir-} ]] || command+=("--pwd=$workdir")
}

container::cause() { # <code> -> cause note: what the runtime's own exit codes say
  local line pattern
  case $container/$1 in
    docker/125) note='docker could not start the container' ;;
    docker/126) note='docker could not run the program in the image' ;;
    docker/127) note='docker found no such program in the image' ;;
    apptainer/255)
      grep -aq '^FATAL: ' "$session_at/log" || return 0
      note='apptainer could not start the container'
      ;;
    *) return 0 ;;
  esac
  cause=launch_failed
  pattern='^docker: ' # behind it comes where to find help
  [[ $container == docker ]] || pattern='^FATAL: '
  line=$(tail -n 20 -- "$session_at/log" 2>/dev/null | grep -a -- "$pattern" | tail -n 1)
  [[ $line ]] || line=$(tail -n 1 -- "$session_at/log" 2>/dev/null)
  note+=": ${line::200}"
}

container::end() { # <attempt directory> : by its name, whoever started it; one that is gone already is no error
  record::read "$1/container" || return 0
  [[ ${record[runtime]-} == docker && ${record[name]-} =~ ^comborun-[A-Za-z0-9_-]+$ ]] || return 0
  timeout -k 1 "${COMBORUN_CONTAINER_S:-20}" docker rm --force "${record[name]}" >/dev/null 2>&1 </dev/null
}
