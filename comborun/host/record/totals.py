"""The sums of a run: how many sessions are in each state, and its episodes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from comborun.host.record import attempt_lineage
from comborun.host.record.queue import DROPPED, SMOKE, rows
from comborun.host.record.run_directory import RunDirectory
from comborun.host.system import files
from comborun.rules import records
from comborun.rules.results.counts import Counts

COUNTED = ("succeeded", "partial", "failed", "cancelled", "lost", "not_needed", "running", "queued")
EPISODES = ("records", "planned")
"""sums that the record of a run's end holds, too"""


@dataclass(frozen=True)
class Span:
    """The episodes of a session, and the counts of its attempts."""

    session: str
    first: int
    count: int
    records: int
    successes: int
    needed: bool = True

    @property
    def combo(self) -> str:
        """The session's name without its range."""
        ending = f"_e{self.first}-{self.first + self.count - 1}"
        return self.session[: -len(ending)] if self.session.endswith(ending) else self.session


def totals(attempts: RunDirectory) -> dict[str, object]:
    """The number of sessions in each state, and the sums of the run."""
    tally: dict[str, int] = dict.fromkeys(COUNTED, 0)
    spans = []
    for row in rows(attempts.layout.queue):
        if row.flag in (DROPPED, SMOKE):
            continue
        for name in row.sessions:
            number = attempts.latest(name)
            life = _life(attempts, name, number) if number else "queued"
            tally[life] += 1
            counts = attempt_lineage.joined_counts(attempts, name) if number else Counts()
            session = files.read(attempts.layout.session_json(name))
            first, count = (records.integer(session, key) or 0 for key in ("first", "count"))
            spans.append(Span(name, first, count, counts.records, counts.successes, needed=life != "not_needed"))
    return {"counts": tally, **sums(spans)}


def sums(spans: Iterable[Span]) -> dict[str, object]:
    """The sums of a run. Sessions of a combo may overlap, and an episode counts once. `successes` is None if more
    records are there than planned episodes, since it is unknown which of them count.
    """
    combos: dict[str, list[Span]] = {}
    for span in spans:
        combos.setdefault(span.combo, []).append(span)
    records = planned = successes = 0
    known = True
    for parts in combos.values():
        due = reach = 0
        for first, end in sorted((part.first, part.first + part.count) for part in parts if part.needed):
            due, reach = due + max(0, end - max(first, reach)), max(end, reach)
        made = sum(part.records for part in parts)
        known = known and (not due or made <= due)
        planned, records = planned + due, records + (min(made, due) if due else made)
        successes += sum(part.successes for part in parts)
    return {"records": records, "planned": planned, "successes": successes if known else None}


def _life(attempts: RunDirectory, name: str, number: int) -> str:
    """Its outcome if it has ended for good, else its state."""
    life = attempts.glance(name, number).life
    if life != "ended":
        return "queued" if life == "queued" else "running"
    return (
        "queued"
        if attempts.follows(name, number)
        else attempt_lineage.outcome(attempts, name, attempts.end(name, number))
    )
