"""Asks a host for its facts, and whether sessions can run there."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from comborun.errors import HostError
from comborun.host.doctor.gpus import FAULTS
from comborun.model.codec import decoded
from comborun.model.resources import HostFacts
from comborun.remote import program
from comborun.rules.facts import Fact
from comborun.rules.names import MULTIPLEXER_NAMES
from comborun.rules.room.capacity import Card
from comborun.text import KIB, harmless

if TYPE_CHECKING:
    from collections.abc import Mapping

    from comborun.model.plan import SecretSource
    from comborun.remote.transport import Transport

_NVIDIA_S = 10
NO_SECRETS: Mapping[str, SecretSource] = MappingProxyType({})


def host_facts(
    transport: Transport,
    secrets: Mapping[str, SecretSource] = NO_SECRETS,
    host_python: str | None = None,
    named: bytes = b"",
) -> HostFacts:
    """The facts of a host, and which of its secrets it lacks, in one round trip.

    `host_python` is the interpreter that the grid names, `named` its other needs (host/doctor/preflight.py). Raises
    HostError if the host has no usable Python.
    """
    wanted = (name for name, source in secrets.items() if source == "host")
    done = program.run_packed(transport, "facts", *wanted, stdin=named, python=program.Python(named=host_python or ""))
    answer = program.answer(transport, done, f"{transport.host} can't report its facts")
    try:
        return _facts(transport.host, answer)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise HostError(f"{transport.host} did not report its facts", repr(error)) from error


def _facts(host: str, answer: Mapping[str, Any]) -> HostFacts:
    gpus = answer["gpus"]
    cards = tuple(sorted((Card(**one) for one in gpus.get("cards", ())), key=lambda card: card.index))
    available = answer["available_kib"]
    return HostFacts(
        host=host,
        hostname=answer["hostname"],
        cpus=answer["cpus"],
        memory=answer["memory_kib"] * KIB,
        gpus=tuple(card.index for card in cards),
        cards=cards,
        available=None if available is None else available * KIB,
        python=answer["python"],
        bash=answer["bash"],
        multiplexers={kind: answer[kind] for kind in MULTIPLEXER_NAMES},
        missing=tuple(answer["missing"]),
        gpu_trouble=(trouble := _trouble(gpus)),
        gpu_fix=next((fix for said, (_, _, fix) in FAULTS.items() if said in trouble.lower()), ""),
        lacking=tuple(answer["lacking"]),
        absent=decoded(tuple[Fact, ...], answer.get("absent", [])),
        origins={name: answer[name] for name in ("checkpoints", "code") if answer.get(name)},
    )


def _trouble(gpus: Mapping[str, Any]) -> str:
    code = gpus.get("code", 0)
    if code == 124:
        return f"nvidia-smi did not answer within {_NVIDIA_S} s"
    said = harmless(gpus.get("said", "")).strip().rstrip(".")
    return f"nvidia-smi failed with code {code}{': ' if said else ''}{said}" if code else ""


def check_host(facts: HostFacts, multiplexer: str | None = None, *, windows: bool = True) -> None:
    """Raise HostError if sessions can't run on this host: programs are missing, or secrets that the grid needs.

    A login node of a cluster, whose sessions run elsewhere, needs no `windows`.
    """
    missing = list(facts.missing)
    if multiplexer and not facts.multiplexers.get(multiplexer):
        missing.append(multiplexer)
    elif windows and not any(facts.multiplexers.values()):
        missing.append("{} (or {})".format(MULTIPLEXER_NAMES[0], ", ".join(MULTIPLEXER_NAMES[1:])))
    if missing:
        raise HostError(
            f"{facts.host} lacks what sessions need: {', '.join(missing)}",
            "install them there, for example: sudo apt-get install tmux bash coreutils util-linux",
        )
    if facts.lacking:
        first = facts.lacking[0]
        raise HostError(
            f"secrets missing on {facts.host}: {', '.join(facts.lacking)}: not set in the environment of the launch"
            " or of a login shell (bash -lc)",
            f"export {first}=... in ~/.profile there, or say `{first}: laptop` and export it here",
        )
