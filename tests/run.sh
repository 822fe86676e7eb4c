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
environment::packages tmux=tmux screen=screen shellcheck=shellcheck shfmt=shfmt bats=bats git=git \
  ssh=openssh-client /usr/sbin/sshd=openssh-server ip=iproute2 \
  /usr/sbin/slurmctld=slurmctld /usr/sbin/slurmd=slurmd sbatch=slurm-client /usr/sbin/munged=munge || exit 69
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
  environment::venv example test
  step 'ruff' ruff check .
  step 'ruff format' ruff format --check .
  step 'mypy' mypy
  step 'pyright' pyright
  # What it compiles is there for all four workers.
  step 'collection' environment::quietly python -m pytest --collect-only --quiet
}

lint_shell() {
  step 'shellcheck' shellcheck -x scripts/*.sh scripts/lib/*.sh scripts/lib/*/*.sh scripts/doctor/*.sh tests/run.sh tests/testbed/*.sh .ci/run
  step 'shfmt' shfmt -i 2 -ci -d scripts tests/run.sh tests/testbed .ci/run
}

# Most tests here run real processes against real clocks, four at a time on whatever the machine has left. So what failed
# runs once more, one after another, and what fails there, too, has failed. Both are shown.
all_tests() {
  local code=0
  python -m pytest --numprocesses 4 --dist worksteal --durations 10 || code=$?
  [ "$code" -eq 1 ] || return "$code"
  printf '== %s\n' 'pytest: what failed beside others, once more by itself'
  python -m pytest --last-failed --last-failed-no-failures none
}

# Beside bats, which mostly waits and needs nothing that is installed here.
said=$(mktemp -d)
trap 'kill ${jobs[@]+"${jobs[@]}"} 2>/dev/null || :; rm -rf "$said"' EXIT
lint >"$said/0" 2>&1 &
jobs=("$!")
lint_shell >"$said/1" 2>&1 &
jobs+=("$!")
step 'bats' bats --recursive tests/bats
for job in 0 1; do
  wait "${jobs[job]}" || failed=1
  cat "$said/$job"
done
jobs=()
[ -z "${failed-}" ] || exit 1
step 'pytest' all_tests
