"""Runs of `combo calibrate`: in a folder of their own below the root, watched closely, and gone when they have told."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from comborun.errors import HostError

if TYPE_CHECKING:
    from comborun.transport import Transport

FOLDER = ".calibrate"
_SAMPLE = 'exec bash "$1/lib/sample.sh" "$1"'
_DISCARD = """
case $1 in */.calibrate/*-????????T??????Z-????) ;; *) exit 64 ;; esac
leases=${COMBORUN_LEASES:-/tmp/comborun-$UID} run=${1##*/}
if [[ -d $1/dispatch ]]; then flock -w 10 "$1/dispatch/lock" rm -rf -- "$1"; else rm -rf -- "$1"; fi
[[ ! -e $1 ]] || exit 0
[[ ! -O $leases/$run.lease ]] || flock -w 10 "$leases/lock" rm -f -- "$leases/$run.lease"
rm -f -- "${1%/*}/.abandoned-$run"
rmdir -- "${1%/*}" 2>/dev/null
exit 0
"""
_ABANDON = ': >"${1%/*}/.abandoned-${1##*/}"'
_ABANDONED = """
case $1 in "~/"*) root=$HOME/${1#"~/"} ;; *) root=$1 ;; esac
for mark in "$root"/.abandoned-*; do
  [[ ! -e $mark ]] || printf '%s\\n' "$root/${mark##*/.abandoned-}"
done
"""
_SAMPLE_S = 20.0


def calibration_root(root: str) -> str:
    return f"{root.rstrip('/')}/{FOLDER}"


@dataclass
class Held:
    """The most that each session was seen to hold, by name."""

    memory_kib: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    gpu_mib: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    """on the GPU where it held most"""
    cpu_s: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    """CPU time so far"""
    at: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    """when that was, on the host's clock"""

    def take(self, answer: str, now: float) -> None:
        """Add one answer of sample.sh; lines that it doesn't have are passed over."""
        hertz = 100
        for line in answer.splitlines():
            what, *words = line.split(" ")
            numbers = [int(word) for word in words[-2:] if word.isdecimal()]
            if what == "hertz" and numbers:
                hertz = numbers[0] or hertz
            elif len(words) == 3 and len(numbers) == 2:
                name = words[0].partition("/")[0]
                if what == "use":
                    self.memory_kib[name] = max(self.memory_kib[name], numbers[0])
                    self.cpu_s[name], self.at[name] = max(self.cpu_s[name], numbers[1] / hertz), now
                elif what == "gpu":
                    self.gpu_mib[name] = max(self.gpu_mib[name], numbers[1])


def sample(transport: Transport, directory: str, held: Held, now: float) -> None:
    """Look once at what the sessions hold. One look that fails costs nothing but its numbers."""
    try:
        held.take(transport.run(_SAMPLE, directory, timeout=_SAMPLE_S).text, now)
    except HostError:
        return


def abandon(transport: Transport, directory: str) -> None:
    """Note that nobody wants the run of a calibration any more, so that the next one removes what is left of it."""
    transport.run(_ABANDON, directory, timeout=30)


def abandoned(transport: Transport, root: str) -> tuple[str, ...]:
    """The runs below `calibration_root` that were abandoned and are not gone."""
    return tuple(transport.run(_ABANDONED, calibration_root(root), timeout=30).text.splitlines())


def discard(transport: Transport, directory: str) -> None:
    """Remove the run of a calibration, with what it has promised, and only that, when its dispatcher has left."""
    transport.run(_DISCARD, directory, timeout=60)
