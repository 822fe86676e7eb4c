"""A changed grid and its run: what stays, what is new, and what the user has to decide. Pure, and by content.

Sessions of the same combo with the same work belong together, whatever their names. Their ranges together are the
combo's episodes. A session never leaves the plan: one that no longer counts is flagged `dropped`.
"""

from __future__ import annotations

import shlex
from collections import defaultdict
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal

from comborun.errors import UserError
from comborun.generate.bundle import RunFile, dispatch_files, judging, session_files
from comborun.model.plan import LIVE_FIELDS, Plan, Session
from comborun.model.work import (
    WORK_FIELDS,
    Combo,
    Spans,
    combo_of,
    describe,
    episodes_of,
    grouped,
    minus,
    name_of_combo,
    process_of,
    replicate_of,
    size,
    union,
    work,
)
from comborun.planner.ranges import range_session
from comborun.rules.names import RUN
from comborun.rules.records import render
from comborun.text import shortened

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Sequence


Choice = Literal["rerun", "keep"]
"""for changed sessions: run them again as the grid says now, or keep those of the run"""


class ChangeKind(StrEnum):
    ADDED = "added"
    MORE = "more"
    FEWER = "fewer"
    CHANGED = "changed"
    REMOVED = "removed"


@dataclass(frozen=True)
class Change:
    kind: ChangeKind
    policy: str
    environment: str
    detail: str
    gone: tuple[str, ...] = ()
    """sessions that are no longer in the grid"""
    coming: tuple[Session, ...] = ()
    """sessions of the grid that the run lacks; their names may be taken"""
    back: tuple[str, ...] = ()
    """dropped sessions that are in the grid again"""
    untouched: bool = False
    """no session of `gone` has left records or files"""

    @property
    def supersedes(self) -> bool:
        return self.kind in {ChangeKind.CHANGED, ChangeKind.REMOVED}

    @property
    def asks(self) -> bool:
        """Whether records would no longer count, so that the user must decide."""
        return self.supersedes and not self.untouched

    def __str__(self) -> str:
        return f"{self.policy} in {self.environment}: {self.detail}"


@dataclass(frozen=True)
class PlanComparison:
    before: Plan
    now: Plan
    changes: tuple[Change, ...]
    common: bool
    """whether the run and the grid have any work in common"""

    @property
    def asks(self) -> tuple[Change, ...]:
        return tuple(change for change in self.changes if change.asks)

    def taken(self, choice: Choice | None) -> tuple[Change, ...]:
        """The changes that the run takes over. With `keep`, none that supersedes a session, begun or not."""
        if choice == "rerun":
            return self.changes
        kept = self.asks if choice is None else [change for change in self.changes if change.supersedes]
        return tuple(change for change in self.changes if change not in kept)


@dataclass(frozen=True)
class Amended:
    plan: Plan
    added: tuple[Session, ...]
    """new sessions, and dropped ones that come back"""
    dropped: tuple[str, ...]
    """names of sessions that no longer count"""


def compare(before: Plan, now: Plan, started: Container[str] | None = None) -> PlanComparison:
    """The differences between the newest plan of a run and `now`, the plan of its changed grid.

    `started` holds the sessions that have left records or files; None: any may have.
    """
    same_files, ships = before.shipped == now.shipped, bool(before.shipped or now.shipped)
    out = {"smoke", "dropped"} if ships else {"smoke"}  # a dropped session may have used other files
    had = grouped((session for session in before.sessions if session.flag not in out), replicate_of)
    meant = grouped(now.sessions, replicate_of)
    pairs = [(had.get(which, []), wanted) for which, wanted in meant.items()]
    found = [_compare(sessions, wanted, same_files=same_files) for sessions, wanted in pairs]
    removed = [_removed(sessions) for which, sessions in had.items() if which not in meant]
    common = any(work(one) == work(wanted[0]) for sessions, wanted in pairs for one in sessions)
    changes = (
        replace(change, untouched=started is not None and not any(name in started for name in change.gone))
        for change in (*found, *removed)
        if change
    )
    return PlanComparison(before, now, tuple(changes), common and same_files)


def check_rule(comparison: PlanComparison, choice: Choice | None) -> None:
    """Raise UserError if a policy would start again although its comparisons may have been seen already."""
    rule = comparison.before.stop_early
    restarted = [change for change in comparison.asks if rule and rule.of((change.policy, change.environment))]
    if choice == "rerun" and restarted:
        names = ", ".join(f"{change.policy} in {change.environment}" for change in restarted[:12])
        raise UserError(
            f"{names}: compared by a rule that was fixed before the first episode; such a comparison can't start again",
            "--new starts another run with new comparisons; --changed keep leaves this one as it is",
        )


def amend(comparison: PlanComparison, choice: Choice | None = None) -> Amended:
    """The plan of the run from now on. Changes that the user must decide are made only if `choice` is `rerun`."""
    before, now = comparison.before, comparison.now
    taken = comparison.taken(choice)
    back = {name for change in taken for name in change.back}
    gone = {name for change in taken for name in change.gone}
    left = {combo_of(session) for session in before.sessions if session.name in gone}
    gone |= {one.name for one in before.sessions if one.flag == "smoke" and combo_of(one) in left}
    meant = {replicate_of(one): one for one in now.sessions}  # all sessions of a replicate are shown and judged alike
    rows = [_row(session, meant.get(replicate_of(session)), gone, back) for session in before.sessions]
    coming = (session for change in taken for session in change.coming)
    fresh = _in_new_processes(tuple(with_free_names(coming, rows)), rows)
    _check_apart([*rows, *fresh])
    shipped = now.shipped if taken == comparison.changes else before.shipped
    return Amended(
        plan=replace(now, sessions=(*rows, *fresh), shipped=shipped, stop_early=before.stop_early),
        added=(*(session for session in rows if session.name in back), *fresh),
        dropped=tuple(session.name for session in rows if session.name in gone),
    )


def _check_apart(sessions: Iterable[Session]) -> None:
    """Raise UserError if episodes of two seeds of a combo would have the same number."""
    numbered: defaultdict[Combo, list[Spans]] = defaultdict(list)
    counted = [one for one in sessions if not one.flag]
    for own in grouped(counted, replicate_of).values():
        numbered[combo_of(own[0])].append(episodes_of(own))
    for combo, parts in numbered.items():
        if sum(map(size, parts)) > size(union(span for part in parts for span in part)):
            message = f"{' in '.join(combo)}: with `seeds`, another number of `episodes` would renumber all episodes"
            raise UserError(message, "--new starts another run")


def _compare(had: Sequence[Session], wanted: Sequence[Session], *, same_files: bool) -> Change | None:
    """The change of a combo that is in the grid, in one session or in blocks; None without one."""
    session = wanted[0]
    live = [one for one in had if one.flag != "dropped"]
    same = [one for one in live if same_files and work(one) == work(session)]
    if same:
        return _ranges(same, wanted)
    gone = tuple(one.name for one in live)
    back = _back([one for one in had if one not in live], wanted)
    coming = () if back else tuple(wanted)
    if not live:
        return _change(ChangeKind.ADDED, session, "taken up again" if back else "new", coming=coming, back=back)
    details = differences(live[-1], session) or ("what sync ships has changed",)
    return _change(ChangeKind.CHANGED, session, "; ".join(details), gone=gone, coming=coming, back=back)


def _back(dropped: Sequence[Session], wanted: Sequence[Session]) -> tuple[str, ...]:
    """The dropped sessions that have the same work as the grid now; none if they lack some of its episodes."""
    same = [one for one in dropped if work(one) == work(wanted[0])]
    if not same or minus(episodes_of(wanted), episodes_of(same)):
        return ()
    return tuple(one.name for one in same)


def _ranges(same: Sequence[Session], wanted: Sequence[Session]) -> Change | None:
    """The change of the episodes of a combo whose work is the same; None without one."""
    session = wanted[0]
    has, wants = episodes_of(same), episodes_of(wanted)
    lacking = minus(wants, has)
    if bool(has) != bool(wants) or (lacking and not (session.ranged and session.unit == "episode")):
        number = f"{size(wants)} {session.unit}s" if wants else f"{session.unit}s"
        detail = f"a start of it takes no range of {session.unit}s, so all {number} would run again"
        return _change(ChangeKind.CHANGED, session, detail, gone=tuple(one.name for one in same), coming=tuple(wanted))
    if lacking:
        base = replace(session, name=name_of_combo(same[0]))
        pieces = [span for one in wanted for span in minus(lacking, minus(lacking, episodes_of([one])))]
        coming = tuple(range_session(base, span.start, span.stop - span.start) for span in pieces)
        return _change(ChangeKind.MORE, session, f"{session.unit}s {describe(lacking)}", coming=coming)
    if rest := minus(has, wants):
        return _change(
            ChangeKind.FEWER, session, f"{session.unit}s {describe(rest)} stay, because the run has planned them"
        )
    return None


def _removed(sessions: Sequence[Session]) -> Change | None:
    names = tuple(session.name for session in sessions if session.flag != "dropped")
    return _change(ChangeKind.REMOVED, sessions[0], "not in the grid any more", gone=names) if names else None


def differences(before: Session, now: Session) -> tuple[str, ...]:
    """A phrase for each part of the work that differs."""
    triples = zip(WORK_FIELDS, work(before), work(now), strict=True)
    return tuple(_difference(key, had, has) for key, had, has in triples if had != has)


def _difference(key: str, before: Any, now: Any) -> str:
    if key == "command":
        return f"command: {_words(before, now)}"
    if key in {"variables", "servers"}:
        return f"{key}: {', '.join(sorted({name for name, _ in {*before} ^ {*now}}))}"
    if key == "setup":
        return key
    if key in {"around", "each"}:
        return "files, links, launcher or container"
    return f"{key}: {_shown(before)} before, {_shown(now)} now"


def _words(before: tuple[str, ...], now: tuple[str, ...]) -> str:
    """The first words that differ, with the option before them."""
    pairs = list(zip(before, now, strict=False))
    place = next((index for index, (a, b) in enumerate(pairs) if a != b), len(pairs))
    option = f"{now[place - 1]} " if 0 < place < len(now) and now[place - 1].startswith("-") else ""
    old, new = (words[place] if place < len(words) else "nothing" for words in (before, now))
    return f"{option}{_shown(old)} before, {_shown(new)} now"


def _shown(value: Any) -> str:
    if not isinstance(value, str):
        return "none" if value is None else str(value)
    try:
        return " ".join(shlex.split(value)) or "nothing"
    except ValueError:
        return value


def _change(kind: ChangeKind, session: Session, detail: str, **sessions: Any) -> Change:
    which = f"seed {session.seed}: " if session.results.base else ""
    return Change(kind, session.policy, session.environment, f"{which}{detail}", **sessions)


def _row(session: Session, meant: Session | None, gone: set[str], back: set[str]) -> Session:
    """A session in the new plan. How it is shown, watched, judged and given room follows the grid."""
    if session.name in gone:
        return replace(session, flag="dropped")
    kept = replace(session, flag="") if session.name in back else session
    if meant is None or kept.flag == "dropped" or work(kept) != work(meant):
        return kept
    live = {name: getattr(meant, name) for name in LIVE_FIELDS}
    named = dict.fromkeys((*meant.results.named, *kept.results.named))  # its process may have run the former ones, too
    return replace(kept, **live | {"results": meant.results.replace(named=tuple(named))})


def with_free_names(coming: Iterable[Session], rows: Iterable[Session]) -> Iterator[Session]:
    """The sessions, each with a name that no row has: if its own is taken, a part of its digest is added."""
    taken = {session.name for session in rows}
    for session in coming:
        digest = session.digest
        names = (session.name, *(f"{session.name}_{digest[at : at + 4]}" for at in range(len(digest) - 3)))
        name = next(name for name in (shortened(name) for name in names) if name not in taken)
        taken.add(name)
        yield replace(session, name=name)


def _in_new_processes(fresh: tuple[Session, ...], rows: Sequence[Session]) -> tuple[Session, ...]:
    """New sessions in processes of their own: one that has run keeps its environments."""
    taken = {process_of(session) for session in rows}
    named: dict[str, str] = {}
    for session in fresh:
        name, digest = session.together, session.digest
        if name and name in taken:
            name = next(name for at in range(len(digest) - 3) if (name := f"{name}_{digest[at : at + 4]}") not in taken)
        named.setdefault(session.together, name)
    return tuple(replace(session, together=named[session.together]) for session in fresh)


def amendment(before: Plan, after: Plan, number: int, grid_text: str) -> Iterator[RunFile]:
    """The files that differ between two plans of a run. `number` is that of `before`; no text: the grid is unchanged.

    The same plan keeps its number, so an interrupted amendment is repeated and not counted twice.
    """
    _check_servers(before, after)
    text = after.to_json()
    if text != before.to_json():
        number += 1
    yield RunFile(RUN.plan(number), text)
    if number > 1 and grid_text:
        yield RunFile(RUN.amended_grid(number), grid_text)
    yield from (file for file in dispatch_files(after) if file.path != RUN.engine)
    if before.secrets != after.secrets:
        yield RunFile(RUN.wanted_secrets, render(after.secrets))
    there = {*session_files(before)}
    yield from (file for file in session_files(after) if file not in there)


def read_otherwise(before: Plan, after: Plan) -> dict[str, dict[str, Any]]:
    """The sessions that are read or judged by other rules than before, with the new rules."""
    had = {session.name: judging(session) for session in before.sessions}
    has = {session.name: judging(session) for session in after.current}
    return {name: rules for name, rules in has.items() if name in had and had[name] != rules}


def read_as_before(before: Plan, amended: Amended) -> Amended:
    """The amendment, but the results of every session are read by the rules of `before`."""
    had = {session.name: session for session in before.sessions}
    sessions = tuple(
        replace(one, results=had[one.name].results, evidence=had[one.name].evidence) if one.name in had else one
        for one in amended.plan.sessions
    )
    return replace(amended, plan=replace(amended.plan, sessions=sessions))


def _check_servers(before: Plan, after: Plan) -> None:
    """Raise UserError if a server has changed: the run's sessions were planned with the old one."""
    had = {server.name: server.digest for server in before.servers}
    for server in after.servers:
        if had.get(server.name, server.digest) != server.digest:
            raise UserError(
                f"the server `{server.name}` differs from the one in this grid's run",
                "start another run with `--new`, or give the new server another name",
            )
