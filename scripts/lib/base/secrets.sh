# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # values are handed on through variables that the callers name
# secrets.sh: environment variables whose values are in no file but one, dispatch/secrets, for as long as the run lasts.
# To be sourced; needs `run`. dispatch/secrets.tsv says which: a line each, name <TAB> host or laptop.

declare -gA secret_of=() # name -> value
secret_names=() secret_hosts=() secret_laptops=()

secrets::wanted() { # -> secret_names secret_hosts secret_laptops; 1 when the run has none
  local name from
  secret_names=() secret_hosts=() secret_laptops=()
  [[ -e $run/dispatch/secrets.tsv ]] || return 1
  while IFS=$'\t' read -r name from; do
    [[ $name =~ ^[A-Za-z_][A-Za-z0-9_]*$ ]] || continue
    secret_names+=("$name")
    [[ $from == host ]] && secret_hosts+=("$name") || secret_laptops+=("$name")
  done <"$run/dispatch/secrets.tsv"
  ((${#secret_names[@]}))
}

secrets::take() { # <NAME=value> <name>... : if it is one of the names, and not empty
  local entry=$1
  shift
  [[ " $* " == *" ${entry%%=*} "* && ${entry#*=} ]] && secret_of[${entry%%=*}]=${entry#*=}
}

secrets::here() { # <name>... : from the environment that this shell was started with
  local entry
  while IFS= read -r -d '' entry; do
    secrets::take "$entry" "$@"
  done <"/proc/$$/environ"
}

secrets::login() { # <name>... : from a login shell's, so that ~/.profile counts; what that prints goes nowhere, and
  # what it leaves running holds neither our locks nor us
  local entry
  while IFS= read -r -t 20 -d '' entry && [[ $entry != comborun-over ]]; do
    secrets::take "$entry" "$@"
  done < <(timeout -k 1 20 bash -lc 'env -0 >&3; printf "comborun-over\0" >&3' 3>&1 >/dev/null 2>&1 </dev/null 7>&-)
}

secrets::host() { # <name>... : on this machine, wherever they are
  local name missing=()
  secrets::here "$@"
  for name; do [[ ${secret_of[$name]+set} ]] || missing+=("$name"); done
  ((${#missing[@]} == 0)) || secrets::login "${missing[@]}"
}

secrets::lacking() { # <name>... : a `lacks_NAME=1` line for each that this machine does not have
  local name
  secrets::host "$@"
  for name; do [[ ${secret_of[$name]+set} ]] || printf 'lacks_%s=1\n' "$name"; done
}

secrets::load() {
  local entry
  [[ -r $run/dispatch/secrets ]] || return 0
  while IFS= read -r -d '' entry; do
    secrets::take "$entry" "${secret_names[@]}"
  done <"$run/dispatch/secrets"
}

secrets::gather() { # [-] -> dispatch/secrets; with `-` those of the laptop are on standard input. 1: one is missing
  local name entry entries=() draft
  secrets::wanted || return 0
  secrets::load
  ((${#secret_hosts[@]})) && secrets::host "${secret_hosts[@]}"
  if [[ ${1-} ]]; then
    while IFS= read -r -d '' entry; do
      secrets::take "$entry" "${secret_laptops[@]}"
    done
  elif ((${#secret_laptops[@]})); then # started by hand: what is here has to do
    secrets::here "${secret_laptops[@]}"
  fi
  for name in "${secret_names[@]}"; do
    entries+=("$name=${secret_of[$name]-}")
    [[ ${secret_of[$name]+set} ]] && continue
    printf 'the secret %s is not in the environment here: combo launch sends it, or export %s\n' "$name" "$name" >&2
    return 1
  done
  record::draft "$run/dispatch/secrets"
  (umask 077 && printf '%s\0' "${entries[@]}" >"$draft") && mv -fT -- "$draft" "$run/dispatch/secrets" || return
  secret_of=()
  unset -v "${secret_names[@]}" # what is started now has them from the file
}

secrets::export() { # in the command's own process. 1: -> note
  local name
  secrets::wanted || return 0
  secrets::load
  for name in "${secret_names[@]}"; do
    [[ ${secret_of[$name]+set} ]] && export -- "$name=${secret_of[$name]}" && continue
    [[ ${!name-} ]] && continue # by hand, with the variable set
    note="the secret $name is not there: combo launch sends it again"
    return 1
  done
  secret_of=()
}

secrets::forget() { # drafts of a start that was killed, too
  rm -f -- "$run/dispatch/secrets" "$run/dispatch"/.secrets.*
}
