"""Asks a host for its facts, and lets it check itself for `combo doctor`: one round trip each."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from comborun.errors import HostError
from comborun.host.doctor.gpus import fault
from comborun.host.system.commands import ABSENT
from comborun.model.codec import decoded
from comborun.model.resources import HostFacts
from comborun.remote import program
from comborun.remote.grids import needs_of, preflight_question
from comborun.rules.facts import Fact
from comborun.rules.findings import Finding, Found, Level
from comborun.rules.names import DEFAULT_ROOT, MULTIPLEXER_NAMES
from comborun.rules.room.capacity import Card
from comborun.text import KIB, harmless

if TYPE_CHECKING:
    from comborun.grid import Grid
    from comborun.model.plan import SecretSource
    from comborun.remote.transport import Transport


def host_facts(
    transport: Transport,
    secrets: Mapping[str, SecretSource] = MappingProxyType({}),
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
    code, said = gpus.get("code"), harmless(gpus.get("said", "")).strip().rstrip(".")
    cards = tuple(sorted((Card(**one) for one in gpus.get("cards", ())), key=lambda card: card.index))
    available = answer["available_kib"]
    return HostFacts(
        host=host,
        **{key: answer[key] for key in ("hostname", "cpus", "python", "bash")},
        lacking=tuple(answer["lacking"]),
        memory=answer["memory_kib"] * KIB,
        gpus=tuple(card.index for card in cards),
        cards=cards,
        available=None if available is None else available * KIB,
        multiplexers={kind: answer[kind] for kind in MULTIPLEXER_NAMES},
        missing=tuple(
            name if flaw == ABSENT else f"GNU's {name} (this one is {flaw}'s)"
            for name, flaw in answer["missing"].items()
        ),
        gpu_trouble=fault(code, said) if code else None,
        absent=decoded(tuple[Fact, ...], answer.get("absent", [])),
        origins={name: answer[name] for name in ("checkpoints", "code") if answer.get(name)},
    )


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


_TIMEOUT_S = 40.0
_SCRIPTS = (".sh", ".bash", ".py")
_MOST_FILES = 500
_X_SERVERS = "/tmp/.X11-unix"  # noqa: S108  (of the X protocol, wherever TMPDIR is)


@dataclass(frozen=True)
class Examination:
    findings: tuple[Finding, ...]
    """the worst first"""
    about: Mapping[str, Any]
    """hostname, os, cpus, memory_kib, python, root"""

    @property
    def healthy(self) -> bool:
        return all(finding.level is not Level.ERROR for finding in self.findings)


@dataclass(frozen=True)
class HostNeeds:
    """The needs of a grid on a host besides those of every run."""

    files: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    python: str = ""
    """its `host_python`"""
    named: bytes = b""
    """its paths and programs, for comborun/host/doctor/preflight.py"""


NOTHING_MORE = HostNeeds()


def examine(transport: Transport, root: str = DEFAULT_ROOT, wanted: HostNeeds = NOTHING_MORE) -> Examination:
    """Let a host examine itself. Raises HostError if it can't answer."""
    asked = time.time()
    words = (root, ",".join(wanted.programs), *wanted.files)
    python = program.Python(named=wanted.python, roots=(root,))
    done = program.run_packed(transport, "doctor", *words, stdin=wanted.named, timeout=_TIMEOUT_S, python=python)
    answered = time.time()
    try:
        document = json.loads(done.text)
        findings = list(decoded(tuple[Finding, ...], document["findings"]))
        begin, end = map(float, document["clock"])
    except (ValueError, TypeError, KeyError):
        raise HostError(f"{transport.host} can't be examined", done.complaint) from None
    if len(findings) > 1:  # otherwise its bash is too old for other checks
        findings.append(clock(asked, begin, end, answered))
    findings.sort(key=lambda finding: list(Level).index(finding.level))  # the worst first
    return Examination(tuple(findings), document["about"])


def clock(asked: float, begin: float, end: float, answered: float) -> Finding:
    """How far the host's clock is off, computed as in NTP: both directions are assumed to take equally long."""
    off = ((begin - asked) + (end - answered)) / 2
    doubt = max(0.0, (answered - asked) - (end - begin)) / 2
    beyond = abs(off) - doubt
    level = Level.WARNING if beyond > 300 else Level.NOTE if beyond > 2 else Level.OK
    code = Found.CLOCK_FAR_OFF if level is Level.WARNING else Found.CLOCK
    return Finding("clock", level, Fact(code, off_s=round(off, 3), doubt_s=round(doubt, 3)))


def wanted_by(grid: Grid, *, local: bool) -> HostNeeds:
    """The scripts in commands and setups, and the sockets of X servers: absolute or below `~/`, each once.

    Paths that are relative to an unknown folder are left out, and so is what `sync` brings.
    """
    found: dict[str, None] = {}
    for needs in needs_of(grid, local=local):
        for path in filter(lambda path: path.endswith(_SCRIPTS), needs["files"]):
            place = path if path.startswith("~/") else str(PurePosixPath(needs["folder"], path))
            found |= {place: None} if place.startswith(("/", "~/")) else {}
    displays = [combo.settings.display for combo in grid.combos if combo.settings.display]
    for display in displays:
        servers = [number for _, number in display.by_gpu] or ([] if display.own else [int(display.server)])
        found |= dict.fromkeys(f"{_X_SERVERS}/X{number}" for number in servers)
    programs = ("Xvfb",) if any(display.own for display in displays) else ()
    return HostNeeds(
        tuple(found)[:_MOST_FILES],
        programs,
        grid.host_python or "",
        preflight_question(grid, local=local, displays=False),
    )
