"""Which planned episodes have no record, and which records are none that count. Pure."""

from __future__ import annotations

from collections import defaultdict
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from comborun.again.resumption import Rejected
from comborun.reporter.adapters import RejectKind
from comborun.reporter.merge import merge
from comborun.work import Spans, combo_of, union

if TYPE_CHECKING:
    from collections.abc import Sequence

    from comborun.reporter.adapters import Reject
    from comborun.reporter.collected import Collected
    from comborun.work import Combo


def missing(collected: Collected) -> dict[Combo, Spans]:
    """For each combo whose records can tell; one of steps, of counts, without results or without a number can't."""
    planned: defaultdict[Combo, list[range]] = defaultdict(list)
    counted = {one.combo for one in collected.aggregates}
    for history in collected.sessions:
        session = history.session
        combo = combo_of(session)
        if session.unit == "episode" and session.results.told and session.count and combo not in counted:
            planned[combo].append(session.episodes)
    merged = merge(collected.records, {combo: union(ranges) for combo, ranges in planned.items()})
    return {one.key: one.missing for one in merged if one.key in planned}


def rejected(collected: Collected) -> dict[str, Rejected]:
    """By session, what it wrote that gave no record; lines that were cut off are left out: their end may come yet."""
    by_session: defaultdict[str, list[Reject]] = defaultdict(list)
    for reject in collected.rejects:
        if reject.kind is not RejectKind.TORN:
            by_session[_session(reject.path)].append(reject)
    return {name: _told(rejects) for name, rejects in by_session.items()}


def _session(path: str) -> str:
    """Whose file it is: `sessions/<name>/attempt-N/...`."""
    parts = PurePosixPath(path).parts
    return parts[1] if len(parts) > 1 else ""


def _told(rejects: Sequence[Reject]) -> Rejected:
    first = rejects[0]
    foreign = sum(one.kind is RejectKind.FOREIGN for one in rejects)
    place = f"{first.path}:{first.line}" if first.line else first.path
    return Rejected(len(rejects), foreign, first.reason, place)
