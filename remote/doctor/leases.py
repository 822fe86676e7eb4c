"""The doctor on leases: which runs, of which users, have promised what of this host. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from comborun.amounts import several
from comborun.remote.doctor.finding import Facts, Finding, Level, integer


@dataclass(frozen=True)
class Lease:
    """What one session was promised. Memory is in MiB."""

    user: str
    run: str
    driven: bool
    """its dispatcher lives"""
    gpus: tuple[int, ...]
    gpu_memory: int
    """on each of them; 0: not said"""
    alone: bool
    cpus: int
    memory: int
    tokens: tuple[str, ...]


class Holder(NamedTuple):
    user: str
    run: str
    driven: bool


def leases(facts: Facts) -> Iterator[Finding]:
    yield from _own(facts)
    told = sorted((one for line in facts.all("lease") if (one := parse(line))), key=_holder)
    for holder, promised in groupby(told, key=_holder):
        yield _finding(holder, list(promised))


def _own(facts: Facts) -> Iterator[Finding]:
    owner, _, rest = facts.one("lease_own").partition(" ")
    mode, _, folder = rest.partition(" ")
    if not owner:
        return
    if owner != facts.one("uid"):
        found = f"{folder} belongs to user {owner}"
    elif re.fullmatch(r"[0-7]?[0-7][0145][0145]", mode) is None:
        found = f"others may write in {folder} (mode {mode})"
    else:
        return
    cost = "no session that asks for GPUs, cores, memory or tokens starts"
    fix = f"chmod 755 {folder}" if owner == facts.one("uid") else "export COMBORUN_LEASES=~/.comborun-leases"
    yield Finding("leases", Level.ERROR, found, cost, fix)


def parse(line: str) -> Lease | None:
    """`user run driven who gpus mib alone cores memory tokens since`; - is nothing."""
    words = line.split()
    if len(words) != 11 or not all(words[place].isdecimal() for place in (2, 5, 6, 7, 8)):
        return None
    gpus = tuple(gpu for word in words[4].split(",") if (gpu := integer(word)) is not None)
    tokens = tuple(word for word in words[9].split(",") if word != "-")
    memory, alone, cpus, main = (int(words[place]) for place in (5, 6, 7, 8))
    return Lease(words[0], words[1], words[2] == "1", gpus, memory, bool(alone), cpus, main, tokens)


def _holder(lease: Lease) -> Holder:
    return Holder(lease.user, lease.run, lease.driven)


def _finding(holder: Holder, promised: list[Lease]) -> Finding:
    parts = [f"{holder.run} of {holder.user} has {several(len(promised), 'session')}", *_gpus(promised)]
    if cpus := sum(one.cpus for one in promised):
        parts.append(several(cpus, "core"))
    if memory := sum(one.memory for one in promised):
        parts.append(f"{memory} MiB of memory")
    parts += sorted({token for one in promised for token in one.tokens})
    dead = "" if holder.driven else "; its dispatcher is gone"
    return Finding(
        "leases", Level.NOTE, ", ".join(parts) + dead, "what it was promised is promised to no other run of that user"
    )


def _gpus(promised: list[Lease]) -> Iterator[str]:
    for gpu in sorted({gpu for one in promised for gpu in one.gpus}):
        there = [one for one in promised if gpu in one.gpus]
        memory = sum(one.gpu_memory for one in there)
        yield f"GPU {gpu}" + (" alone" if any(one.alone for one in there) else f" {memory} MiB" if memory else "")
