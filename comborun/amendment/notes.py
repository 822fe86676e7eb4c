"""Notes of a launch whose grid differs from its run: what the run takes over, what it keeps, what counts now. Pure."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from comborun.model.work import combo_of, episodes_of, grouped, name_of_combo
from comborun.rules import records
from comborun.rules.results.counts import Counts
from comborun.text import first_of, several
from comborun.words.rows import why_not_counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from comborun.amendment.changes import Change, Choice, PlanComparison
    from comborun.model.plan import Plan, PolicyFiles, Session

_MOST = 12
_SIGNS = {"added": "+", "more": "+", "fewer": "=", "changed": "~", "removed": "-"}
_OF_PLAN = ("retry", "notify", "after", "secrets", "slurm")
_OF_SESSIONS = ("results", "progress", "evidence", "failures", "watch", "pin", "display")


def change_lines(changes: Sequence[Change]) -> Iterator[str]:
    yield from (f"{_SIGNS[change.kind]} {change}" for change in changes[:_MOST])
    if len(changes) > _MOST:
        yield f"and {len(changes) - _MOST} more"


def change_notes(comparison: PlanComparison, choice: Choice | None) -> tuple[str, ...]:
    taken = comparison.taken(choice)
    kept = [change for change in comparison.changes if change not in taken]
    return (*change_lines(taken), *(f"{line}; kept as the run has it" for line in change_lines(kept)))


def rule_kept(before: Plan, now: Plan) -> tuple[str, ...]:
    """A note if the run keeps a `stop_early` that differs from the grid's."""
    if before.stop_early == now.stop_early:
        return ()
    was = "nothing may stop early" if before.stop_early is None else "as it was fixed before the first episode"
    return (f"stop_early stays as the run has it ({was}); --new starts a run with the grid's own",)


def policies_kept(had: PolicyFiles, has: PolicyFiles) -> str:
    """A note that a glob finds other policy files than the run was planned with."""
    more, gone = {*has.found} - {*had.found}, {*had.found} - {*has.found}
    changed = [f"{len(more)} more"] * bool(more) + [f"{len(gone)} of them gone"] * bool(gone)
    return (
        f"{', '.join(had.patterns)} finds other files now ({', '.join(changed)}); the run keeps those that "
        "it was planned with: --changed rerun takes those that are there now"
    )


def cut_kept(before: Plan, now: Plan) -> tuple[str, ...]:
    """A note if the grid cuts combos with the same episodes into another number of sessions."""
    had, meant = (grouped((one for one in plan.sessions if not one.flag), combo_of) for plan in (before, now))
    kept = [" in ".join(one) for one in had if one in meant and _cut_otherwise(had[one], meant[one])]
    why = "in the sessions that the run has; --new starts a run with the grid's own cut"
    return (f"{first_of(kept, _MOST)}: {why}",) if kept else ()


def _cut_otherwise(had: Sequence[Session], meant: Sequence[Session]) -> bool:
    """Whether the same episodes are in another number of sessions. Sessions for gaps or for added episodes don't count:
    beside them is the combo's own session, without a range in its name."""
    added_to = len(meant) == 1 and any(one.name == name_of_combo(one) for one in had)
    return len(had) != len(meant) and episodes_of(had) == episodes_of(meant) and not added_to


def taken_over(before: Plan, after: Plan) -> tuple[str, ...]:
    """Names the keys by which the run is scheduled, watched, judged and shown in another way from now on.

    `before` is the run's plan as it was, `after` as amended. Sessions that came or went are reported elsewhere.
    """
    kept = {one.name for one in before.current} & {one.name for one in after.current}
    had, has = dict(_keys(before, kept)), dict(_keys(after, kept))
    if after.slurm:
        had["limits.parallel"] = has["limits.parallel"]  # on Slurm this limit is a part of `slurm`
    changed = [key for key in had if had[key] != has[key]]
    return (f"the run follows the grid's new {', '.join(changed)}",) if changed else ()


def _keys(plan: Plan, names: set[str]) -> Iterator[tuple[str, Any]]:
    """Key of the grid -> its value, or the list of its values in the sessions of these names."""
    sessions = [session for session in plan.sessions if session.name in names]
    yield from ((f"limits.{key}", value) for key, value in asdict(plan.limits).items())
    yield from {"reserve": plan.reserve, "use_gpus": plan.gpus, "poll": plan.poll}.items()
    yield from ((key, getattr(plan, key)) for key in _OF_PLAN)
    yield "resources", [one.request for one in sessions]
    yield from ((key, [getattr(one, key) for one in sessions]) for key in _OF_SESSIONS)


# Results that are read by other rules


@dataclass(frozen=True)
class Rereading:
    """One attempt whose end record would change."""

    session: str
    attempt: int
    before: Mapping[str, Any]
    """of its end record"""
    now: Mapping[str, Any]

    @property
    def fewer(self) -> bool:
        """Whether less of it would count."""
        had, has = self._counts
        incomplete = self.before["completeness"] == "complete" != self.now["completeness"]
        return incomplete or has.records < had.records or has.verdicts < had.verdicts

    @property
    def words(self) -> str:
        """`0 episodes before, 10 now (7 with success)`, and why the rest does not count."""
        had, has = self._counts
        counted = f"{several(had.records, 'episode')} before, {has.records} now ({has.successes} with success)"
        was, now = self.before["completeness"], self.now["completeness"]
        whole = f"{was} before, {now} now" if was != now else ""
        return "; ".join(filter(None, (counted, whole, why_not_counted(has.facts))))

    @property
    def _counts(self) -> tuple[Counts, Counts]:
        return Counts.of(records.read(self.before)), Counts.of(records.read(self.now))


def reading_lines(changes: Sequence[Rereading]) -> Iterator[str]:
    """A line for all sessions with the same change."""
    alike = grouped(changes, lambda one: one.words)
    for words, ones in list(alike.items())[:_MOST]:
        many = f"each of {len(ones)} attempts" if len(ones) > 1 else f"{ones[0].session}, attempt {ones[0].attempt}"
        yield f"{many}: {words}"
    if len(alike) > _MOST:
        yield f"and {sum(map(len, list(alike.values())[_MOST:]))} more attempts"
