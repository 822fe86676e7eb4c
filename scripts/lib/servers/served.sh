# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# served.sh: a session that asks model servers: where they are, and whether they are still the ones that it was given.
# To be sourced by session.sh, where a script names `servers`.

served_by='' # NAME/ATTEMPT of each server that this attempt was given, blank separated; names as in servers/
served_lost_ms=0

served::export() { # from the grant; by hand, without one, from what runs in this run
  local line lines=() name url
  local -A url_of=()
  [[ -r $session_at/grant ]] && mapfile -t lines 2>/dev/null <"$session_at/grant"
  for line in "${lines[@]}"; do
    case $line in
      served_by=*) [[ ${line#*=} =~ ^([a-z0-9-]+/[1-9][0-9]*\ ?)+$ ]] && served_by=${line#*=} ;;
      server_*=*) url_of[${line%%=*}]=${line#*=} ;;
    esac
  done
  for name in "${servers[@]}"; do
    url=${url_of[server_$name]-}
    [[ $url ]] || served::by_hand
    [[ $url =~ ^http://([0-9.]+):([1-9][0-9]{0,4})$ ]] || session::die 69 "it needs the server $name, and none is ready"
    name=${name^^}
    name=COMBORUN_SERVER_${name//-/_}
    export "${name}_URL=$url" "${name}_HOST=${BASH_REMATCH[1]}" "${name}_PORT=${BASH_REMATCH[2]}"
  done
}

served::by_hand() { # -> url: of the server, or of the one of its GPU, or of any GPU
  local file
  for file in "$run/servers/$name/url" "$run/servers/$name-gpu${session_gpus%%,*}/url" "$run/servers/$name-gpu"*/url; do
    [[ -e $file ]] && read -r url <"$file" && return
  done
}

served::lost() { # -> why: a server that it was given is gone; a new one at the same address is another one
  local one record life
  local -A record=()
  for one in $served_by; do
    attempt::glance "$run/servers/${one%/*}/attempt-${one#*/}"
    [[ $life == @(ended|lost) ]] || continue
    why="its server ${one%/*} ended"
    [[ ! ${record[cause]-} ]] || why+=" (${record[cause]}${record[code]:+, code ${record[code]}})"
    return 0
  done
  return 1
}

served::silent() { # -> why: a server that it was given does not answer just now
  local one answer port log=''
  local -A record=()
  for one in $served_by; do
    record::read "$run/servers/${one%/*}/attempt-${one#*/}/ready" || continue
    port=${record[port]-}
    [[ $port =~ ^[0-9]+$ ]] || continue
    if [[ ${record[path]-} ]]; then
      # an error is no answer here either: vLLM's front lives on with 503 once its engine has died
      ready::ask "${COMBORUN_ANSWER_S:-5}" GET "${record[path]}" &&
        [[ $answer == 'HTTP/'[0-9.]*' '[23][0-9][0-9]' '* ]] && continue
    else
      ready::ask "${COMBORUN_ANSWER_S:-5}" && continue
    fi
    why="its server ${one%/*} does not answer"
    return 0
  done
  return 1
}
