"""The rows of queue.jsonl: what a dispatcher knows of each session beforehand."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from comborun.host.record.deals import deal_of
from comborun.host.system import files
from comborun.rules import names, records
from comborun.rules.names import NAME, RunLayout
from comborun.rules.room.capacity import Request

SMOKE, DROPPED = "smoke", "dropped"


@dataclass(frozen=True)
class Row:
    name: str
    flag: str
    """nothing, `smoke`, or `dropped`: amended away, or dealt to another box, so it does not start here"""
    request: Request
    servers: tuple[str, ...]
    """the model servers that it uses"""
    program: str
    """sessions of one program warm up together"""
    sessions: tuple[str, ...]
    """what its process runs: itself, or several sessions that the grid still has"""


def rows(path: str) -> Iterator[Row]:
    """The rows of queue.jsonl; other lines are skipped."""
    deal = deal_of(RunLayout(os.path.dirname(os.path.dirname(path))))
    for fields in files.read_rows(path):
        name, flag, program = (text(fields, key) for key in ("name", "flag", "kind"))
        if re.fullmatch(NAME, name):
            flag = flag if flag in (SMOKE, DROPPED) else ""
            flag = flag if deal is None or deal.runs_here(name) else DROPPED
            gone = records.texts(fields, names.DROPPED)
            sessions = tuple(one for one in records.texts(fields, names.TOGETHER) if one not in gone) or (name,)
            yield Row(name, flag, request(fields), records.texts(fields, "servers"), program or "all", sessions)


def text(fields: Mapping[str, object], key: str) -> str:
    """A text field of a row; empty if it is not a text."""
    value = fields.get(key)
    return value if isinstance(value, str) else ""


def request(fields: Mapping[str, object]) -> Request:
    """The request in a row of queue.jsonl or servers.jsonl; malformed values are left out."""
    gpus, memory, host_memory, per_gpu, per_host = (
        max(0, records.integer(fields, key) or 0) for key in ("gpus", "gpu_memory", "memory", "per_gpu", "per_host")
    )
    whole = records.integer(fields, "cpus")
    cpus = max(0, (records.seconds(fields, "cpus") or 0) if whole is None else whole)
    return Request(
        gpus=gpus,
        gpu_memory=memory if gpus else 0,
        cpus=cpus,
        memory=host_memory,
        tokens=records.texts(fields, "tokens"),
        group=text(fields, "group"),
        per_gpu=per_gpu,
        per_host=per_host,
        only=tuple(int(one) for one in records.texts(fields, "only") if one.isdecimal()) if gpus else (),
    )
