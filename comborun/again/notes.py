"""What a launch says of a grid that differs from its run: what the run takes over, and what it keeps. Pure."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from comborun.again.amend import Kind
from comborun.planner import name_of_combo
from comborun.text import several
from comborun.work import combo_of, episodes_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from comborun.again.amend import Change, Choice, Comparison
    from comborun.plan import Plan, Session
    from comborun.policy_files import PolicyFiles
    from comborun.work import Combo

_MOST = 12
_SIGNS = {Kind.ADDED: "+", Kind.MORE: "+", Kind.FEWER: "=", Kind.CHANGED: "~", Kind.REMOVED: "-"}
_OF_PLAN = ("retry", "notify", "after", "secrets", "slurm")
_OF_SESSIONS = ("results.metrics", "progress", "evidence", "failures", "watch", "pin", "display")
_REQUESTED = ("gpu_memory", "cpus", "memory", "per_gpu", "per_host")
_MIB = {"gpu_memory", "memory"}


def change_lines(changes: Sequence[Change]) -> Iterator[str]:
    """A line for each change, the first ones."""
    yield from (f"{_SIGNS[change.kind]} {change}" for change in changes[:_MOST])
    if len(changes) > _MOST:
        yield f"and {len(changes) - _MOST} more"


def change_notes(comparison: Comparison, choice: Choice | None) -> tuple[str, ...]:
    """What became of each combo that the grid has changed."""
    taken = comparison.taken(choice)
    kept = [change for change in comparison.changes if change not in taken]
    return (*change_lines(taken), *(f"{line}; kept as the run has it" for line in change_lines(kept)))


def rule_kept(before: Plan, now: Plan) -> tuple[str, ...]:
    """A note where the run keeps another `stop_early` than the grid's; `now` is the grid, laid out."""
    if before.stop_early == now.stop_early:
        return ()
    was = "nothing may stop early" if before.stop_early is None else "as it was fixed before the first episode"
    return (f"stop_early stays as the run has it ({was}); --new starts a run with the grid's own",)


def policies_kept(had: PolicyFiles, has: PolicyFiles) -> str:
    """A note where a glob finds other policy files than those that the run was planned with."""
    more, gone = {*has.found} - {*had.found}, {*had.found} - {*has.found}
    changed = [f"{len(more)} more"] * bool(more) + [f"{len(gone)} of them gone"] * bool(gone)
    return (
        f"{', '.join(had.patterns)} finds other files now ({', '.join(changed)}); the run keeps those that "
        "it was planned with: --changed rerun takes what is there now"
    )


def cut_kept(before: Plan, now: Plan) -> tuple[str, ...]:
    """A note on combos that the grid would cut into another number of sessions for the same episodes."""
    had, meant = _by_combo(before), _by_combo(now)
    told = [
        f"{' in '.join(combo)}: {several(len(sessions), 'session')}, not {len(meant[combo])}"
        for combo, sessions in had.items()
        if combo in meant and _cut_otherwise(sessions, meant[combo])
    ]
    if not told:
        return ()
    more = f" and {several(len(told) - _MOST, 'more combo')}" if len(told) > _MOST else ""
    return (
        f"stay cut as the run has them ({', '.join(told[:_MOST])}{more}); --new starts a run with the grid's own cut",
    )


def _by_combo(plan: Plan) -> dict[Combo, list[Session]]:
    combos: defaultdict[Combo, list[Session]] = defaultdict(list)
    for session in plan.sessions:
        if not session.flag:
            combos[combo_of(session)].append(session)
    return combos


def _cut_otherwise(had: Sequence[Session], meant: Sequence[Session]) -> bool:
    """A session for gaps, or for added episodes, is no cut: then the combo's own, without a range in its name, is
    there as well."""
    added_to = len(meant) == 1 and any(one.name == name_of_combo(one) for one in had)
    return len(had) != len(meant) and episodes_of(had) == episodes_of(meant) and not added_to


def taken_over(before: Plan, after: Plan) -> tuple[str, ...]:
    """How work is scheduled, watched, judged and shown from now on: a sentence for each key that has changed.

    `before` is the run's plan as it was, `after` as amended.
    """
    kept = {one.name for one in before.sessions if one.flag != "dropped"}
    kept &= {one.name for one in after.sessions if one.flag != "dropped"}
    had, has = ([one for one in plan.sessions if one.name in kept] for plan in (before, after))
    return (
        *_numbers(before, after),
        *(f"{key} has changed" for key in _OF_PLAN if getattr(before, key) != getattr(after, key)),
        *_requests(had, has),
        *(f"{key} has changed" for key in _OF_SESSIONS if _values(had, key) != _values(has, key)),
    )


def _numbers(before: Plan, after: Plan) -> Iterator[str]:
    was, now = _numbers_of(before), _numbers_of(after)
    derived = {"limits.per_gpu"} if _unlimited(before) and _unlimited(after) else set[str]()
    derived |= {"limits.parallel"} if after.slurm else set()  # `slurm` has it there
    for key in was:
        if was[key] != now[key] and key not in derived:
            yield f"{key}: {_shown(was[key], key)} before, {_shown(now[key], key)} now"


def _numbers_of(plan: Plan) -> dict[str, Any]:
    return {
        **{f"limits.{key}": value for key, value in asdict(plan.limits).items()},
        **{f"reserve.{key}": value for key, value in asdict(plan.reserve).items()},
        "use_gpus": ", ".join(map(str, plan.gpus)) or "none",
        "poll": plan.poll,
    }


def _unlimited(plan: Plan) -> bool:
    """Whether a GPU may hold all sessions, as it may where the grid sets no `per_gpu`."""
    return not plan.limits.per_gpu or plan.limits.per_gpu >= sum(not session.flag for session in plan.sessions)


def _requests(had: Sequence[Session], has: Sequence[Session]) -> Iterator[str]:
    for key in _REQUESTED:
        pairs = zip(_values(had, f"request.{key}"), _values(has, f"request.{key}"), strict=True)
        if changed := [(was, now) for was, now in pairs if was != now]:
            was, now = (_span(values, key) for values in zip(*changed, strict=True))
            yield f"resources.{key}: {was} before, {now} now"
    if _values(had, "request.tokens") != _values(has, "request.tokens"):
        yield "resources.exclusive has changed"


def _values(sessions: Sequence[Session], key: str) -> list[Any]:
    values: list[Any] = [*sessions]
    for part in key.split("."):
        values = [getattr(value, part) for value in values]
    return values


def _span(values: Sequence[int], key: str) -> str:
    least, most = min(values), max(values)
    shown = _shown(most, key) if most else "not said"
    return shown if least == most else f"{least or 'not said'} to {shown}"


def _shown(value: object, key: str) -> str:
    amount = f"{value:g}" if isinstance(value, float) else str(value)
    return f"{amount} MiB" if key.rpartition(".")[2] in _MIB else amount
