"""Puts a complete run directory on a host, or finds the existing one, and amends it. All safe to repeat."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
import zlib
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Literal, cast

from comborun.amendment.changes import Amended, amendment, read_otherwise
from comborun.amendment.notes import Rereading
from comborun.errors import HostError
from comborun.generate.bundle import RunFile, bundle
from comborun.model.plan import Plan, Session
from comborun.remote import program
from comborun.remote.library import library_files
from comborun.remote.shipping import ALWAYS_EXCLUDED
from comborun.rules.deal import Deal, parse
from comborun.rules.facts import Fact
from comborun.rules.names import RUN
from comborun.words import say

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from comborun.grid import Grid
    from comborun.model.resources import HostFacts
    from comborun.remote.shipping import Shipment
    from comborun.remote.transport import Transport

_NOT_SHIPPED = tuple(f":(top,exclude,glob)**/{name}{below}" for name in ALWAYS_EXCLUDED for below in ("", "/**"))
"""paths that git leaves out"""
State = Literal["new", "resumed", "finished", "changed"]

_DEADLINE_S = 120.0
_READING_S = 0.5
"""for each session whose results are judged once more"""
_WRITING_S = 0.01
"""for each file: a run of 100,000 sessions has 200,000"""
_OF_GIT = frozenset(("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"))
"""variables of a hook, which name another repository"""
_OF_HOST = ("hostname", "cpus", "memory", "gpus", "bash")


@dataclass(frozen=True)
class ExistingRun:
    """An existing run; an amendment is valid only for this state of it."""

    plan: Plan
    number: int
    digest: str
    ended: bool
    """whether nothing starts there any more"""
    whole: bool
    """whether it has ended, and nothing was lost or cancelled"""
    held: bool
    """whether it is paused, draining, halted, or has a GPU in quarantine"""
    hold: str = ""
    """paused, draining or halted; empty without a hold"""
    why: str = ""
    """the reason of the hold, in one line"""
    elsewhere: Fact | None = None
    """the machine that it runs on, if its processes can't be seen from the host"""
    environment: Fact | None = None
    """how the variables of a start from here would differ from those of the first launch"""
    deal: Deal | None = None
    """of a part of a run on several hosts"""
    started: frozenset[str] = frozenset()
    """sessions that run or may run, or that have left records or files"""


@dataclass(frozen=True)
class Publication:
    state: State
    run: str
    directory: str
    found: ExistingRun | None = None
    """the existing run; None for a new one"""

    @property
    def root(self) -> str:
        return self.directory.removesuffix(f"/{self.run}")


@dataclass(frozen=True)
class RunContent:
    """What is published as a run, or taken over by one."""

    plan: Plan
    grid_text: str
    root: str
    provenance: Mapping[str, Any]
    python: program.Python = program.ANY
    """the interpreter that was found on the host"""
    deal: Deal | None = None
    """of a part of a run on several hosts, as long as the host has no other one"""


def publish(transport: Transport, draft: RunContent, mode: str = "resume") -> Publication:
    """Publish a complete run directory, unless a run of the same grid exists; one round trip.

    `mode` is resume, new (another run in any case), or after:RUN (another one, unless RUN has a successor). `changed`
    means that the run of the same grid does other work; then nothing was done.
    """
    files = [*bundle(draft.plan, draft.grid_text, library_files(), draft.provenance)]
    order: dict[str, Any] = {
        "root": draft.root,
        "grid": draft.plan.grid,
        "digest": draft.plan.following.digest,
        "mode": mode,
    }
    if deal := draft.deal:
        files.append(RunFile(RUN.deal, deal.text))
        order["part"] = {"grid_run": deal.grid_run, "first": deal.box if deal.box == deal.boxes[0] else ""}
    answer = _send(transport, "publish", order, files, draft.python)
    found = _found(answer) if answer["state"] != "new" else None
    return Publication(cast("State", answer["state"]), answer["run"], answer["directory"], found)


def put_amendment(
    transport: Transport, publication: Publication, amended: Amended, draft: RunContent
) -> tuple[str, ...] | None:
    """Amend the plan of a run, in one round trip. Returns the dropped sessions that still run.

    None: the run has changed meanwhile, and nothing was done. `draft` is the grid that is taken over.
    """
    found = publication.found
    if found is None:
        raise ValueError("a new run has nothing to amend")
    order = {
        "root": publication.root,
        "run": publication.directory,
        "digest": draft.plan.digest,
        "found": found.digest,
        "number": found.number,
        "added": len(amended.added),
        "after": amended.plan.after is not None,
        "dropped": list(amended.dropped),
        "rules": read_otherwise(found.plan, amended.plan),
    }
    files = amendment(found.plan, amended.plan, found.number, draft.grid_text)
    answer = _send(transport, "amend", order, files, draft.python)
    return tuple(answer["running"]) if answer["state"] == "amended" else None


def reread(transport: Transport, directory: str, rules: Mapping[str, Any]) -> tuple[Rereading, ...]:
    """The end records that attempts would have by `rules`, by session. Changes nothing."""
    data, python = json.dumps(rules).encode(), program.of_run(directory)
    timeout = _DEADLINE_S + _READING_S * len(rules)
    done = program.run_packed(transport, "reread", directory, stdin=data, timeout=timeout, python=python)
    changes = program.answer(transport, done, f"the files of {directory} can't be read on {transport.host}")
    return tuple(Rereading(**change) for change in changes)


def add_sessions(transport: Transport, directory: str, before: tuple[Plan, int], added: tuple[Session, ...]) -> bool:
    """Add sessions to a run whose newest plan, with its number, is `before`. False: the plan has changed since."""
    had = before[0].whole
    plan = replace(had, sessions=(*had.sessions, *added))
    found = ExistingRun(had, before[1], had.digest, ended=False, whole=False, held=False)
    publication = Publication("resumed", PurePosixPath(directory).name, directory, found)
    draft = RunContent(plan, "", publication.root, {})
    return put_amendment(transport, publication, Amended(plan, added, ()), draft) is not None


def _found(answer: Mapping[str, Any]) -> ExistingRun:
    try:
        newest = Plan.from_json(answer["plan"])
    except ValueError as error:
        raise HostError(
            f"the plan of {answer['directory']} can't be read: {error}",
            "was it written by another version of comborun? --new starts another run",
        ) from error
    names = ("number", "digest", "ended", "whole", "held", "hold")
    known, started = {name: answer[name] for name in names}, frozenset(answer["started"])
    reason = Fact.of(answer["reason"])
    known |= {name: Fact.of(answer[name]) for name in ("elsewhere", "environment")}
    known["deal"] = parse(answer["deal"])
    return ExistingRun(plan=newest, started=started, **known, why=say(reason) if reason else answer["why"])


def _send(
    transport: Transport, verb: str, order: Mapping[str, Any], files: Iterable[RunFile], python: program.Python
) -> dict[str, Any]:
    """Send an order with its files and a checksum: the host does nothing unless all has arrived."""
    document = {**order, "files": [(file.path, file.text, file.executable) for file in files]}
    data = zlib.compress(json.dumps(document).encode())
    digest = hashlib.sha256(data).hexdigest()
    timeout = _DEADLINE_S + _READING_S * len(order.get("rules") or ()) + _WRITING_S * len(document["files"])
    done = program.run_packed(transport, verb, digest, stdin=data, timeout=timeout, python=python)
    failure = f"the run could not be put on {transport.host} below {order['root']}"
    answer: dict[str, Any] = program.answer(transport, done, failure)
    return answer


# The manifest without the plan


def provenance(grid: Grid, facts: HostFacts, shipments: Iterable[Shipment]) -> dict[str, Any]:
    """Versions, the host, and the state of the repositories of the grid and of shipped files. Contains no time."""
    folder, preset = grid.path.parent, grid.program
    return {
        "python": platform.python_version(),
        "grid_sha256": hashlib.sha256(grid.text.encode("utf-8", "surrogateescape")).hexdigest(),
        **({"given": list(grid.given)} if grid.given else {}),
        "commit": _git(folder, "rev-parse", "HEAD"),
        "uncommitted": _changed(folder, "--untracked-files=no"),
        "host": {
            "name": facts.host,
            **{key: getattr(facts, key) for key in _OF_HOST},
            **facts.multiplexers,
            "cards": [card.name for card in facts.cards],
            "driver": next((card.driver for card in facts.cards), ""),
        },
        **facts.origins,
        "preset": {"name": preset.name, "sha256": preset.digest} if preset else None,
        "sync": [_shipped(shipment) for shipment in shipments],
    }


def _shipped(shipment: Shipment) -> dict[str, Any]:
    return {
        "from": shipment.entry.source,
        "to": shipment.entry.to,
        "files": len(shipment.items),
        "bytes": shipment.size,
        "sha256": shipment.digest,
        "converted": sum(getattr(item, "converted", False) for item in shipment.items),
        "commit": _git(shipment.home, "rev-parse", "HEAD"),
        # untracked files count, unless they are never shipped
        "uncommitted": _changed(shipment.home, "--", str(shipment.source), *_NOT_SHIPPED),
    }


def _changed(folder: Path, *which: str) -> bool | None:
    """Whether files differ from the commit; None outside a repository."""
    changes = _git(folder, "status", "--porcelain", *which)
    return None if changes is None else bool(changes)


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
            env={name: value for name, value in os.environ.items() if name not in _OF_GIT},
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
