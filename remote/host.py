"""Ask a host what it is."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from comborun.attempt import parse_record
from comborun.errors import HostError
from comborun.facts import HostFacts
from comborun.library import library_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from comborun.transport import Transport

NEEDED = ("flock", "setsid", "grep", "mkfifo", "mktemp", "mv", "sha256sum", "stat", "tail", "timeout")
"""bash, coreutils, grep and util-linux; and one of tmux and screen"""

_SCRIPT = r"""
printf 'hostname=%s\nbash=%s\n' "${HOSTNAME:-unknown}" "$BASH_VERSION"
printf 'cpus=%s\n' "$(nproc 2>/dev/null)"
while read -r key value _; do [[ $key == MemTotal: ]] && printf 'memory_kib=%s\n' "$value"; done </proc/meminfo
printf 'tmux=%s\nscreen=%s\n' "$(tmux -V 2>/dev/null)" "$(screen -v 2>/dev/null)"
for program in "$@"; do command -v -- "$program" >/dev/null || printf 'missing_%s=1\n' "$program"; done
if command -v nvidia-smi >/dev/null; then
  timeout -k 1 10 nvidia-smi --query-gpu=index --format=csv,noheader,nounits 2>/dev/null |
    while read -r index; do printf 'gpu_%s=1\n' "$index"; done
fi
exit 0
"""


def ask(transport: Transport, secrets: Iterable[str] = ()) -> HostFacts:
    """The facts of a host, and which of the secrets that it should have it lacks, in one round trip."""
    names = shlex.join(secrets)
    look = f"{library_files()['secrets.sh']}\nsecrets::lacking {names}\n" if names else ""
    done = transport.run(look + _SCRIPT, *NEEDED, timeout=60)
    record = parse_record(done.text)
    if "bash" not in record:
        raise HostError(f"{transport.host} did not answer as a host with bash does", done.complaint)
    return _facts(transport.host, record)


def _facts(host: str, record: Mapping[str, str]) -> HostFacts:
    gpus = (key.removeprefix("gpu_") for key in record if key.startswith("gpu_"))
    return HostFacts(
        host=host,
        hostname=record.get("hostname", ""),
        cpus=int(record.get("cpus") or 1),
        memory=int(record.get("memory_kib") or 0) * 1024,
        gpus=tuple(sorted(int(gpu) for gpu in gpus if gpu.isdecimal())),
        bash=record["bash"],
        tmux=record.get("tmux", ""),
        screen=record.get("screen", ""),
        missing=tuple(key.removeprefix("missing_") for key in record if key.startswith("missing_")),
        lacking=tuple(key.removeprefix("lacks_") for key in record if key.startswith("lacks_")),
    )


def check(facts: HostFacts, multiplexer: str | None) -> None:
    """Raise HostError, naming everything that is missing, when sessions can't run on this host."""
    missing = list(facts.missing)
    if multiplexer and not getattr(facts, multiplexer):
        missing.append(multiplexer)
    elif not (facts.tmux or facts.screen):
        missing.append("tmux (or screen)")
    if missing:
        raise HostError(
            f"{facts.host} lacks what sessions need: {', '.join(missing)}",
            "install them there, for example: sudo apt-get install tmux util-linux coreutils grep",
        )
