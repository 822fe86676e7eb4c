"""The files of a new run directory, and the one bash stream that publishes them. Pure but for the library's text."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from comborun import __version__
from comborun.instances import instances, table
from comborun.jobs import policy_entries, texts
from comborun.layout import RUN
from comborun.planner.furnished import kind
from comborun.script import FRONT, SLURM_FRONT, notify_script, scripts, server_script

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from comborun.plan import Plan, Session
    from comborun.survival import RetryRule


SCHEMA = 1
_AT_ONCE = 500
"""folders that one process makes: its arguments have to fit"""
MOST = 999_999_999
"""the dispatcher reads nine digits"""


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
    yield File(RUN.front, SLURM_FRONT if plan.slurm else FRONT, executable=True)
    for name, text in library.items():
        yield File(RUN.library / name, text)
    for name, text in scripts(plan):
        yield File(RUN.script(name), text)
    yield from serving(plan)
    yield File(RUN.queue, queue(plan))
    yield File(RUN.policy, policy(plan))
    if plan.notify:
        yield File(RUN.notify, notify_script(plan.notify))
    if plan.replaces:
        yield File(RUN.replaces, "".join(f"{name}\n" for name in plan.replaces))
    if plan.secrets:
        yield File(RUN.wanted_secrets, wanted_secrets(plan))
    if plan.slurm:
        yield from (File(path, text) for path, text in texts(plan))


def serving(plan: Plan) -> Iterator[File]:
    """What the host has to know of a plan's model servers; nothing for one without."""
    for one in instances(plan):
        yield File(RUN.server_script(one.name), server_script(one))
    if plan.servers:
        yield File(RUN.server_table, table(plan))


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
        **({"stop_early": plan.stop_early.as_data()} if plan.stop_early else {}),
        "provenance": {"comborun": __version__, **provenance},
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def queue(plan: Plan) -> str:
    """`dispatch/queue.tsv`: a line per session in plan order; a place in it is never given to another."""
    return "".join("\t".join(map(str, _row(session))) + "\n" for session in plan.sessions)


def _row(session: Session) -> tuple[object, ...]:
    """name gpus flag gpu_memory_mib cpus memory_mib tokens group group_per_gpu group_per_host only servers kind; - is
    nothing."""
    request = session.request
    amounts = request.gpu_memory, request.cpus, request.memory
    group = request.group or "-", request.per_gpu, request.per_host
    servers = ",".join(name for name, _ in session.servers) or "-"
    tokens, only = ",".join(request.tokens) or "-", ",".join(map(str, request.only)) or "-"
    return session.name, session.gpus, session.flag or "-", *amounts, tokens, *group, only, servers, kind(session)


def policy(plan: Plan) -> str:
    """`dispatch/policy.tsv`: what the dispatcher goes by, as integers and clean words."""
    limits = plan.limits
    entries = {
        "parallel": limits.parallel,
        "per_gpu": limits.per_gpu,
        "stagger_ms": _milliseconds(limits.stagger),
        "warm_up_ms": _milliseconds(limits.warm_up),
        "give_way_ms": _milliseconds(limits.give_way),
        "attempts": limits.attempts,
        "gpus": ",".join(map(str, plan.gpus)) or "-",
        "reserve_gpu_mib": plan.reserve.gpu_memory,
        "headroom_gpu_mib": plan.reserve.headroom,
        "reserve_memory_mib": plan.reserve.memory,
        "cpus": plan.cpus,
        "breaker": limits.breaker,
        "fail_fast": limits.fail_fast,
        "fail_fast_percent": limits.fail_fast_percent,
        **policy_entries(plan),
        **_retries(plan.retry),
    }
    if plan.notify:
        entries |= {"notify_every_ms": _milliseconds(plan.notify.every), "notify_kinds": ",".join(plan.notify.kinds)}
    return "".join(
        f"{key}\t{min(value, MOST) if isinstance(value, int) else value}\n" for key, value in entries.items()
    )


def wanted_secrets(plan: Plan) -> str:
    """`dispatch/secrets.tsv`: names of environment variables and where their values are."""
    return "".join(f"{name}\t{source}\n" for name, source in plan.secrets)


def _retries(rules: Iterable[RetryRule]) -> dict[str, int]:
    entries: dict[str, int] = {}
    for rule in rules:
        entries[f"retry_{rule.failure}"] = rule.times
        if rule.times:
            entries[f"wait_{rule.failure}_ms"] = _milliseconds(rule.wait)
    return entries


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)


def installer(
    files: Iterable[File], publish: str, begin: Iterable[str], commit: Iterable[str] = ("publish::commit",)
) -> bytes:
    """The bash program that writes `files` on the host: `publish` is the text of publish.sh, `begin` its arguments,
    `commit` the call that puts them in their place.

    Everything in it is text and goes through shlex.quote; bash writes the files with builtins, so that 800 sessions
    cost hardly more processes there than 8.
    """
    files = tuple(files)
    folders = sorted({str(file.path.parent) for file in files} - {"."})
    lines = [publish, shlex.join(["publish::begin", *begin])]
    starts = range(0, len(folders), _AT_ONCE)
    lines += [shlex.join(["publish::folders", *folders[first : first + _AT_ONCE]]) for first in starts]
    for file in files:
        mode = "755" if file.executable else "644"
        lines.append(shlex.join(["publish::file", str(file.path), mode, file.text]))
    lines.append(shlex.join(commit))
    return "\n".join([*lines, ""]).encode("utf-8", "surrogateescape")
