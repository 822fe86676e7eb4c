"""Put a run directory on a host whole, or learn of the one that is there; and amend that one. All safe to repeat."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast

from comborun.again.amendment import amendment
from comborun.attempt import integer, parse_record
from comborun.bundle import bundle, installer
from comborun.errors import HostError
from comborun.library import library_files
from comborun.plan import Plan

if TYPE_CHECKING:
    from collections.abc import Mapping

    from comborun.again.amend import Amended
    from comborun.transport import Completed, Transport

State = Literal["new", "resumed", "finished", "changed"]

_RECEIVE = """
file=$(mktemp) || exit 73
trap 'rm -f -- "$file"' EXIT
cat >"$file" || exit 74
printf '%s  %s\\n' "$1" "$file" | sha256sum --check --status ||
  { echo 'what arrived is not what was sent' >&2; exit 76; }
bash --noprofile --norc "$file"
"""
_DEADLINE_S = 120.0


@dataclass(frozen=True)
class Found:
    """What a run that was there is like; an amendment is good for this state of it and no other."""

    plan: Plan
    """its newest"""
    number: int
    """of that plan"""
    digest: str
    ended: bool
    """nothing starts there any more"""
    whole: bool
    """it has ended, and nothing of it was lost or cancelled"""
    held: bool
    """paused, draining, halted, or with a GPU in quarantine"""
    hold: str = ""
    """paused, draining or halted; empty when the run is free to go on"""
    why: str = ""
    """of the hold, in one line"""
    started: frozenset[str] = frozenset()
    """sessions that have, or may have, begun"""


@dataclass(frozen=True)
class Publication:
    """Where a grid's run is and whether it was there before."""

    state: State
    run: str
    directory: str
    found: Found | None = None
    """None for a new one"""

    @property
    def root(self) -> str:
        return self.directory.removesuffix(f"/{self.run}")


@dataclass(frozen=True)
class Draft:
    """A grid, ready to be published."""

    plan: Plan
    grid_text: str
    root: str
    provenance: Mapping[str, Any]


def publish(transport: Transport, draft: Draft, mode: str = "resume") -> Publication:
    """Put the run directory there whole, unless a run of the same grid is there; one round trip.

    `mode` is resume, new (another run whatever is there), or after:RUN (another one, unless RUN has a successor).
    `changed` means that the run of the same grid does other work; nothing was done then.
    """
    library = library_files()
    begin = (draft.root, draft.plan.grid, draft.plan.digest, mode)
    files = bundle(draft.plan, draft.grid_text, library, draft.provenance)
    done = _send(transport, installer(files, library["publish.sh"], begin))
    head, _, plan = done.text.partition("\n\n")
    answer = parse_record(head)
    if done.code or "state" not in answer:
        raise _refusal(transport, draft.root, done)
    found = _found(answer, plan) if answer["state"] != "new" else None
    return Publication(cast("State", answer["state"]), answer["run"], answer["directory"], found)


def amend(transport: Transport, publication: Publication, amended: Amended, draft: Draft) -> tuple[str, ...] | None:
    """Give a run its amended plan, in one round trip; the dropped sessions that still run, by name.

    None: the run is not as it was found any more, and nothing was done. `draft` is the grid that is taken over.
    """
    found = publication.found
    if found is None:
        raise ValueError("a new run has nothing to amend")
    library = library_files()
    files = amendment(found.plan, amended.plan, found.number, draft.grid_text)
    numbers = (found.number, len(amended.added), int(amended.plan.after is not None))
    commit = ("amend::commit", publication.directory, found.digest, *map(str, numbers))
    begin = (publication.root, draft.plan.grid, draft.plan.digest, "resume")
    program = f"{library['publish.sh']}\n{library['amend.sh']}"
    done = _send(transport, installer(files, program, begin, (*commit, *amended.dropped)))
    answer = parse_record(done.text)
    if done.code or "state" not in answer:
        raise _refusal(transport, publication.directory, done)
    return tuple(answer["running"].split()) if answer["state"] == "amended" else None


def _found(answer: Mapping[str, str], plan: str) -> Found:
    try:
        newest = Plan.from_json(plan)
    except (ValueError, KeyError, TypeError) as error:
        raise HostError(
            f"the plan of {answer['directory']} can't be read: {error!r}",
            "was it written by another version of comborun? --new starts another run",
        ) from error
    return Found(
        plan=newest,
        number=integer(answer, "number") or 0,
        digest=answer["digest"],
        ended=answer["ended"] == "1",
        whole=answer["whole"] == "1",
        held=answer["held"] == "1",
        hold=answer.get("hold", ""),
        why=answer.get("why", ""),
        started=frozenset(answer["started"].split()),
    )


def _send(transport: Transport, stream: bytes) -> Completed:
    return transport.run(_RECEIVE, hashlib.sha256(stream).hexdigest(), stdin=stream, timeout=_DEADLINE_S)


def _refusal(transport: Transport, place: str, done: Completed) -> HostError:
    complaint = done.complaint or f"exit code {done.code}"
    return HostError(f"the run could not be put on {transport.host} below {place}", complaint)
