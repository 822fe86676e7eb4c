# shellcheck shell=bash
# environment.sh: what a checkout needs to run, made on the spot. Sourced by run_parallel.sh and tests/run.sh, with
# `checkout` set to the checkout's folder. Kept to bash 3.2, the one that macOS has.

# shellcheck disable=SC2154 # checkout: see above
venv=$checkout/.venv # where the example's grid looks for it, too

environment::say() { # <message>
  printf '%s\n' "$*" >&2
}

environment::die() { # <message>...
  printf 'comborun: %s\n' "$@" >&2
  exit 69
}

environment::packages() { # <program=package>...: install what is absent; 1, and exactly what is missing, if that fails
  local pair absent=()
  for pair in "$@"; do
    command -v "${pair%%=*}" >/dev/null || absent[${#absent[@]}]=${pair#*=}
  done
  [ ${#absent[@]} -eq 0 ] || environment::install "${absent[@]}"
}

environment::install() { # <package>...: through apt-get where that is possible; else 1, and what to do
  local as_root=''
  if [ "$(id -u)" -ne 0 ]; then
    as_root=sudo
    sudo -n true 2>/dev/null || as_root=none
  fi
  if [ "$as_root" = none ] || ! command -v apt-get >/dev/null; then
    environment::say "comborun: these system packages are missing: $*"
    environment::say "comborun: install them, for example with: sudo apt-get install $* (or: brew install $*)"
    return 1
  fi
  environment::say "Installing system packages: $*"
  # shellcheck disable=SC2086 # sudo, or no word at all
  environment::quietly env DEBIAN_FRONTEND=noninteractive $as_root apt-get update -qq ||
    environment::say "(apt-get update failed; trying with the package lists that are there)"
  # shellcheck disable=SC2086
  environment::quietly env DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -qq --no-install-recommends "$@" || {
    environment::say "comborun: these system packages could not be installed: $*"
    return 1
  }
}

environment::quietly() { # <command>...: its output is shown only when it fails
  local log
  log=$(mktemp) || return 1
  if "$@" >"$log" 2>&1 </dev/null; then
    rm -f "$log"
    return 0
  fi
  tail -n 30 "$log" >&2
  rm -f "$log"
  return 1
}

environment::python() { # -> the newest Python on the PATH that will do, or nothing
  local candidate
  for candidate in python3.13 python3.12 python3.11 python3 python; do
    if command -v "$candidate" >/dev/null &&
      "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      printf '%s' "$candidate"
      return
    fi
  done
}

environment::venv() { # <extra>...: the checkout's own virtual environment, with these extras; at once when it is there
  local sum extra needed=''
  sum="$(cksum <"$checkout/pyproject.toml") $venv" # an environment that was moved or copied runs the old place's code
  for extra in "$@"; do
    if ! [ -x "$venv/bin/combo" ] || [ "$(cat "$venv/.comborun-$extra" 2>/dev/null)" != "$sum" ]; then
      needed=$needed${needed:+,}$extra
    fi
  done
  if [ -z "$needed" ]; then return 0; fi
  environment::say "Setting up the Python environment in $venv (once)"
  if environment::moved; then rm -rf -- "$venv"; fi
  if command -v uv >/dev/null; then
    environment::with_uv "$needed"
  else
    environment::with_pip "$needed"
  fi
  for extra in "$@"; do printf '%s\n' "$sum" >"$venv/.comborun-$extra"; done
}

environment::moved() { # whether there is an environment of ours that was made in another place
  [ ! -L "$venv" ] && [ -f "$venv/.comborun-example" ] && ! grep -qF -- "$venv" "$venv/bin/activate" 2>/dev/null
}

environment::with_uv() { # <extra,...>
  [ -x "$venv/bin/python" ] || environment::quietly uv venv --quiet --python '>=3.11' "$venv" ||
    environment::die "uv could not make $venv"
  environment::quietly uv pip install --quiet --python "$venv/bin/python" --editable "${checkout}[$1]" ||
    environment::die "uv could not install comborun into $venv"
}

environment::with_pip() { # <extra,...>
  local python
  python=$(environment::python)
  [ -n "$python" ] || environment::die "Python 3.11 or newer is missing" \
    "install it, or install uv (https://docs.astral.sh/uv), which brings its own"
  "$python" -c 'import ensurepip' 2>/dev/null || environment::install "$(basename "$python")-venv" ||
    exit 69
  "$venv/bin/python" -c 'import pip' 2>/dev/null || environment::quietly "$python" -m venv "$venv" ||
    environment::die "$python could not make $venv"
  environment::quietly "$venv/bin/python" -m pip install --quiet --no-input --disable-pip-version-check \
    --no-compile --editable "${checkout}[$1]" || environment::die "pip could not install comborun into $venv"
}
