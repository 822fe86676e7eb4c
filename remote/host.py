"""Ask a host what it is."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from comborun.amounts import KIB
from comborun.attempt import parse_record
from comborun.errors import HostError
from comborun.facts import Card, HostFacts
from comborun.library import library_files
from comborun.plaintext import harmless

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from comborun.transport import Transport

NEEDED = ("flock", "setsid", "grep", "mkfifo", "mktemp", "mv", "sha256sum", "stat", "tail", "timeout")
"""bash, coreutils, grep and util-linux; and one of tmux and screen"""

_NVIDIA_S = 10

_SCRIPT = r"""
printf 'hostname=%s\nbash=%s\n' "${HOSTNAME:-unknown}" "$BASH_VERSION"
printf 'cpus=%s\n' "$(nproc 2>/dev/null)"
while read -r key value _; do
  [[ $key == MemTotal: ]] && printf 'memory_kib=%s\n' "$value"
  [[ $key == MemAvailable: ]] && printf 'available_kib=%s\n' "$value"
done </proc/meminfo
printf 'tmux=%s\nscreen=%s\n' "$(tmux -V 2>/dev/null)" "$(screen -v 2>/dev/null)"
for program in "${@:2}"; do command -v -- "$program" >/dev/null || printf 'missing_%s=1\n' "$program"; done
if command -v nvidia-smi >/dev/null; then
  table=$(timeout -k 1 "$1" nvidia-smi --format=csv,noheader,nounits \
    --query-gpu=index,uuid,memory.total,memory.used,name 2>/dev/null)
  code=$?
  while IFS=, read -r index rest; do printf 'gpu_%s=%s\n' "$index" "$rest"; done <<<"$table"
  ((code == 0)) || printf 'nvidia_code=%s\nnvidia_said=%s\n' "$code" "${table%%$'\n'*}"
fi
exit 0
"""


def ask(transport: Transport, secrets: Iterable[str] = ()) -> HostFacts:
    """The facts of a host, and which of the secrets that it should have it lacks, in one round trip."""
    names = shlex.join(secrets)
    look = f"{library_files()['base/secrets.sh']}\nsecrets::lacking {names}\n" if names else ""
    done = transport.run(look + _SCRIPT, str(_NVIDIA_S), *NEEDED, timeout=60)
    record = parse_record(done.text)
    if "bash" not in record:
        raise HostError(f"{transport.host} did not answer as a host with bash does", done.complaint)
    return _facts(transport.host, record)


def _facts(host: str, record: Mapping[str, str]) -> HostFacts:
    cards = tuple(sorted(_cards(record), key=lambda card: card.index))
    return HostFacts(
        host=host,
        hostname=record.get("hostname", ""),
        cpus=int(record.get("cpus") or 1),
        memory=int(record.get("memory_kib") or 0) * KIB,
        gpus=tuple(card.index for card in cards),
        cards=cards,
        available=int(record["available_kib"]) * KIB if record.get("available_kib") else None,
        bash=record["bash"],
        tmux=record.get("tmux", ""),
        screen=record.get("screen", ""),
        missing=tuple(key.removeprefix("missing_") for key in record if key.startswith("missing_")),
        gpu_trouble=_trouble(record),
        lacking=tuple(key.removeprefix("lacks_") for key in record if key.startswith("lacks_")),
    )


def _cards(record: Mapping[str, str]) -> Iterator[Card]:
    for key, value in record.items():
        index = key.removeprefix("gpu_")
        if not (key.startswith("gpu_") and index.isdecimal()):
            continue
        uuid, total, used, name = [*(part.strip() for part in value.split(",", 3)), "", "", "", ""][:4]
        yield Card(int(index), uuid, name, _mebibytes(total), _mebibytes(used))


def _trouble(record: Mapping[str, str]) -> str:
    """What is wrong with nvidia-smi; `timeout` ends with 124, or 137 where it had to kill."""
    code, said = record.get("nvidia_code", ""), harmless(record.get("nvidia_said", "")).strip().rstrip(".")
    if code in ("124", "137"):
        return f"nvidia-smi did not answer within {_NVIDIA_S} s"
    return f"nvidia-smi failed with code {code}{': ' if said else ''}{said}" if code else ""


def _mebibytes(text: str) -> int | None:
    """`[N/A]` is not told."""
    return int(text) if text.isdecimal() else None


def check(facts: HostFacts, multiplexer: str | None, *, windows: bool = True) -> None:
    """Raise HostError, naming everything that is missing, when sessions can't run on this host.

    A login node of a cluster, whose sessions run elsewhere, needs no `windows`.
    """
    missing = list(facts.missing)
    if multiplexer and not getattr(facts, multiplexer):
        missing.append(multiplexer)
    elif windows and not (facts.tmux or facts.screen):
        missing.append("tmux (or screen)")
    if missing:
        raise HostError(
            f"{facts.host} lacks what sessions need: {', '.join(missing)}",
            "install them there, for example: sudo apt-get install tmux util-linux coreutils grep",
        )
