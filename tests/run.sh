#!/usr/bin/env bash
# Sets everything up, then: lint, types, shellcheck, and all tests.
#
#   ./tests/run.sh                 everything
#   ./tests/run.sh ARGUMENT...     pytest with these arguments only
#   COMBORUN_SLOW=1 ./tests/run.sh tests/faults -n 3      every fault with tmux and screen, here and behind sshd: five minutes
#   COMBORUN_SLOW=1 ./tests/run.sh tests/integration -k slurm      every fault on a real Slurm, and minutes of them at random
set -euo pipefail

checkout=$(cd -- "$(dirname "$0")/.." && pwd -P)
# shellcheck source=scripts/environment.sh
. "$checkout/scripts/environment.sh"
environment::packages tmux=tmux screen=screen shellcheck=shellcheck shfmt=shfmt git=git \
  ssh=openssh-client /usr/sbin/sshd=openssh-server ip=iproute2 \
  /usr/sbin/slurmctld=slurmctld /usr/sbin/slurmd=slurmd sbatch=slurm-client /usr/sbin/munged=munge || exit 69
environment::packages chromium=chromium || environment::say "No Chromium: the report's page is not tried in a browser"
cd "$checkout"
PATH=$venv/bin:$PATH

if [ $# -gt 0 ]; then
  environment::venv example test
  exec python -m pytest "$@"
fi

step() { # <title> <command>...
  printf '== %s\n' "$1"
  shift
  "$@"
}

lint() {
  step 'ruff' ruff check .
  step 'ruff format' ruff format --check .
  step 'shellcheck' shellcheck -x scripts/*.sh comborun/host/*.sh tests/run.sh tests/testbed/*.sh .ci/run
  step 'shfmt' shfmt -i 2 -ci -d scripts tests/run.sh tests/testbed .ci/run
  step 'mypy' mypy
  # What it compiles is there for all workers.
  step 'collection' environment::quietly python -m pytest --collect-only --quiet
}

# What travels to hosts runs under every Python from 3.8 on: its tests, with the Pythons that are here.
old_python() { # <version>
  local python folder=$checkout/.venv-$1
  for python in "$(command -v "python$1")" ~/.pyenv/versions/"$1".*/bin/python3; do
    if "$python" -c 'import venv, ensurepip' 2>/dev/null; then break; else python=''; fi
  done
  if [ -z "$python" ]; then
    printf '== no Python %s here: not tried\n' "$1"
    return
  fi
  if ! "$folder/bin/python" -c 'import hypothesis, numpy, xdist' 2>/dev/null; then
    "$python" -m venv "$folder"
    "$folder/bin/python" -m pip install --quiet --quiet --disable-pip-version-check hypothesis numpy \
      'pytest>=8.3' 'pytest-xdist>=3.6'
  fi
  step "rules and host under Python $1" travelling_tests "$folder" -n 1 ||
    step "rules and host under Python $1: what failed beside others" travelling_tests "$folder" --last-failed
}

old_pythons() {
  local version code=0
  for version in 3.8 3.9 3.13; do old_python "$version" || code=1; done
  return "$code"
}

travelling_tests() { # <virtual environment> <argument of pytest>...: the usual Python has tried thousands of inputs
  PYTHONPATH=$checkout:$checkout/tests/testbed COMBORUN_FUZZ=50 nice -n 5 "$1/bin/python" -m pytest -q -c /dev/null \
    -o cache_dir="$1/.cache" --rootdir "$checkout" tests/unit/rules tests/unit/host "${@:2}"
}

# Most tests here run real processes against real clocks, and wait more than they compute: six at a time. What failed
# runs once more, one after another, and what fails there, too, has failed. What needed that is named last: it has a flaw.
all_tests() {
  local code=0 again
  python -m pytest --numprocesses 6 --dist worksteal --durations 10 || code=$?
  [ "$code" -eq 1 ] || return "$code"
  again=$(python -c 'import json, sys; print("\n".join(json.load(open(sys.argv[1]))))' .pytest_cache/v/cache/lastfailed)
  code=0
  step 'pytest: what failed beside others, once more by itself' \
    python -m pytest --last-failed --last-failed-no-failures none || code=$?
  printf '== %s\n' 'needed a second run, or failed it:' "$again"
  return "$code"
}

said=$(mktemp -d)
# The old Pythons compute while something else waits.
old_pythons >"$said/old" 2>&1 &
old=$!
trap 'kill "$old" 2>/dev/null || :; rm -rf "$said"' EXIT
environment::venv example test
pyright >"$said/pyright" 2>&1 &
types=$!
code=0
lint || code=1
wait "$types" || code=1
step 'pyright' cat "$said/pyright"
[ "$code" -eq 0 ] || exit 1
step 'pytest' all_tests || code=$?
wait "$old" || code=1
cat "$said/old"
[ "$code" -eq 0 ]
