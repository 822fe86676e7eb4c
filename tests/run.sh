#!/usr/bin/env bash
# Sets everything up, then: lint, types, shellcheck, and all tests.
#
#   ./tests/run.sh                 everything
#   ./tests/run.sh ARGUMENT...     pytest with these arguments only
#   COMBORUN_SLOW=1 ./tests/run.sh                        everything, for hours, and under a third old Python
#   COMBORUN_SLOW=1 ./tests/run.sh -n 6                   both multiplexers where tmux is usually enough, longer simulations
#   COMBORUN_SLOW=1 ./tests/run.sh tests/faults -n 3      every fault with tmux and screen, here and behind sshd: five minutes
#   COMBORUN_SLOW=1 ./tests/run.sh tests/integration -k slurm      every fault on a real Slurm, and minutes of them at random
#   COMBORUN_SLOW=1 COMBORUN_SEED=2 COMBORUN_ROUNDS=50 ./tests/run.sh tests/integration/test_moves.py -k random_faults -s -n 0
#     sessions that move while laptops, dispatchers, hosts and links die; COMBORUN_SECONDS bounds it instead
set -euo pipefail

checkout=$(cd -- "$(dirname "$0")/.." && pwd -P)
# shellcheck source=scripts/environment.sh
. "$checkout/scripts/environment.sh"
environment::packages tmux=tmux screen=screen shellcheck=shellcheck shfmt=shfmt git=git \
  ssh=openssh-client /usr/sbin/sshd=openssh-server ip=iproute2 \
  /usr/sbin/slurmctld=slurmctld /usr/sbin/slurmd=slurmd sbatch=slurm-client /usr/sbin/munged=munge || exit 69
environment::packages podman=podman /usr/libexec/podman/catatonit=catatonit || environment::say "No podman: containers are tried with a stand-in only"
environment::packages chromium=chromium || environment::say "No Chromium: the report's page is not tried in a browser"
cd "$checkout"
PATH=$venv/bin:$PATH
unset PYTHONDONTWRITEBYTECODE # a module is compiled once, and not by each worker and each combo

if [ $# -gt 0 ]; then
  environment::venv example test
  exec python -m pytest "$@"
fi

step() { # <title> <command>...
  printf '== %s\n' "$1"
  shift
  "$@"
}

lint() { # all of it, whatever fails
  local code=0
  step 'ruff' ruff check . || code=1
  step 'ruff format' ruff format --check . || code=1
  step 'shellcheck' shellcheck -x scripts/*.sh comborun/host/*.sh tests/run.sh tests/testbed/*.sh .ci/run || code=1
  step 'shfmt' shfmt -i 2 -ci -d scripts tests/run.sh tests/testbed .ci/run || code=1
  step 'mypy' mypy || code=1
  # What it compiles is there for all workers. Those of tests/unit have one, which compiles its own.
  step 'collection' environment::quietly python -m pytest --collect-only --quiet --ignore tests/unit || code=1
  return "$code"
}

# What travels to hosts runs under every Python from 3.8 on: its tests, with the oldest and the newest one, and with
# COMBORUN_SLOW one between them, where they are here. The oldest one installs what all of them can import.
old_pythons() {
  local version python code=0 tools=$checkout/.venv-old
  for version in 3.8 ${COMBORUN_SLOW:+3.9} 3.13; do
    for python in "$(command -v "python$version")" ~/.pyenv/versions/"$version".*/bin/python3; do
      if "$python" -c 'import pip' 2>/dev/null; then break; else python=''; fi
    done
    if [ -z "$python" ]; then
      printf '== no Python %s here: not tried\n' "$version"
      continue
    fi
    PYTHONPATH=$tools "$python" -c 'import hypothesis, pytest' 2>/dev/null ||
      "$python" -m pip install --quiet --quiet --disable-pip-version-check --no-compile --upgrade --target "$tools" \
        hypothesis 'pytest>=8.3'
    step "rules and host under Python $version" travelling_tests "$python" ||
      step "rules and host under Python $version: what failed beside others" travelling_tests "$python" --last-failed ||
      code=1
  done
  return "$code"
}

travelling_tests() { # <python> <argument of pytest>...; what computes for seconds tells nothing of a Python
  PYTHONPATH=$checkout:$checkout/tests/testbed:$tools nice -n 5 "$1" -m pytest -q -c /dev/null \
    -o cache_dir="$tools/.cache-$version" --rootdir "$checkout" tests/unit/rules tests/unit/host -k "not compute and not busy and not is_fast" "${@:2}"
}

# Most tests outside of tests/unit run real processes against real clocks, and wait more than they compute: six at a
# time. Those of tests/unit run beside them, in one process: each reads thousands of tests for seconds before the first.
all_tests() {
  local code=0
  beside tests_of unit 0 tests/unit >"$said/unit" 2>&1
  unit=$!
  tests_of processes 6 tests --ignore tests/unit || code=$?
  wait "$unit" || code=$?
  cat "$said/unit"
  return "$code"
}

# What failed runs once more, one after another, and what fails there, too, has failed. What needed that is named last:
# it has a flaw.
tests_of() { # <name> <workers> <argument of pytest>...
  local code=0 again cache=.pytest_cache/$1
  python -m pytest -o cache_dir="$cache" --numprocesses "$2" --dist worksteal --durations 10 "${@:3}" || code=$?
  [ "$code" -eq 1 ] || return "$code"
  again=$(python -c 'import json, sys; print("\n".join(json.load(open(sys.argv[1]))))' "$cache/v/cache/lastfailed")
  code=0
  step 'pytest: what failed beside others, once more by itself' \
    python -m pytest -o cache_dir="$cache" --last-failed --last-failed-no-failures none "${@:3}" || code=$?
  printf '== %s\n' 'needed a second run, or failed it:' "$again"
  return "$code"
}

said=$(mktemp -d) groups=''
# A process group for each, so that Ctrl-C ends what they started, too.
beside() { # <command>...
  set -m
  "$@" &
  set +m
  groups+=" $!"
}
leave() {
  local group
  for group in $groups; do kill -- "-$group" 2>/dev/null || :; done
  rm -rf "$said"
}
trap leave EXIT
# The old Pythons compute while something else waits.
beside old_pythons >"$said/old" 2>&1
old=$!
environment::venv example test
beside pyright >"$said/pyright" 2>&1
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
