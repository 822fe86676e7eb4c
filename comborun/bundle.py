"""The files of a new run directory, and the one bash stream that publishes them. Pure but for the library's text."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from comborun import __version__
from comborun.layout import RunLayout
from comborun.script import FRONT, scripts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from comborun.plan import Plan

RUN = RunLayout(PurePosixPath())
"""names relative to the run directory"""

SCHEMA = 1


@dataclass(frozen=True)
class File:
    """One file below a run directory."""

    path: PurePosixPath
    text: str
    executable: bool = False


def bundle(plan: Plan, grid_text: str, library: Mapping[str, str], provenance: Mapping[str, Any]) -> Iterator[File]:
    """Everything that a run consists of before it starts."""
    yield File(RUN.manifest, manifest(plan, provenance))
    yield File(RUN.plan(1), plan.to_json())
    yield File(RUN.grid, grid_text)
    yield File(RUN.front, FRONT, executable=True)
    for name, text in library.items():
        yield File(RUN.library / name, text)
    for name, text in scripts(plan):
        yield File(RUN.script(name), text)
    yield File(RUN.queue, "".join(f"{session.name}\t{session.gpus}\n" for session in plan.sessions))
    yield File(RUN.policy, policy(plan))
    if plan.replaces:
        yield File(RUN.replaces, "".join(f"{name}\n" for name in plan.replaces))
    if plan.secrets:
        yield File(RUN.wanted_secrets, "".join(f"{name}\t{source}\n" for name, source in plan.secrets))


def manifest(plan: Plan, provenance: Mapping[str, Any]) -> str:
    """`run.json`: what is expected, fixed before anything starts."""
    expected = [
        {
            "session": session.name,
            "policy": session.policy,
            "environment": session.environment,
            "unit": session.unit,
            "first": session.first,
            "count": session.count,
            "seed": session.seed,
            "digest": session.digest,
        }
        for session in plan.sessions
    ]
    content = {
        "schema": SCHEMA,
        "grid": plan.grid,
        "digest": plan.digest,
        "expected": expected,
        "provenance": {"comborun": __version__, **provenance},
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def policy(plan: Plan) -> str:
    """`dispatch/policy.tsv`: what the dispatcher goes by, as integers and clean words."""
    limits = plan.limits
    entries = {
        "parallel": limits.parallel,
        "per_gpu": limits.per_gpu,
        "stagger_ms": round(limits.stagger * 1000),
        "attempts": limits.attempts,
        "gpus": ",".join(map(str, plan.gpus)) or "-",
    }
    return "".join(f"{key}\t{value}\n" for key, value in entries.items())


def installer(files: Iterable[File], publish: str, begin: Iterable[str]) -> bytes:
    """The bash program that writes `files` on the host: `publish` is the text of publish.sh, `begin` its arguments.

    Everything in it is text and goes through shlex.quote; bash writes the files with builtins, so that 800 sessions
    cost no more processes there than 8.
    """
    lines = [publish, shlex.join(["publish::begin", *begin])]
    for file in files:
        mode = "755" if file.executable else "644"
        lines.append(shlex.join(["publish::file", str(file.path), mode, file.text]))
    lines.append("publish::commit\n")
    return "\n".join(lines).encode("utf-8", "surrogateescape")
