"""What the paths of a folder's files say by the names of a grid: a session, one of its two names, or unknown ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from comborun.errors import UserError
from comborun.model.plan import Session
from comborun.model.work import combo_of
from comborun.reporter.records.collector import RecordCollector
from comborun.reporter.records.combos import saying_names, stem_of
from comborun.reporter.records.reading import Context, Defect, Reading
from comborun.rules.facts import Fact
from comborun.rules.results.counts import NOT_IN_GRID
from comborun.rules.results.fields import ResultRules
from comborun.rules.results.proposals import renamed
from comborun.text import clean
from comborun.words import say

KINDS = ("policy", "environment")
_NAMES_SHOWN = 10


def session_of_path(name: PurePosixPath, sessions: Sequence[Session]) -> Session | None:
    """The session whose combo a path names: by both of its names, or by the one that tells it from the others."""
    parts = _parts(name)
    axes = {axis: {getattr(one, axis) for one in sessions} for axis in KINDS}

    def named(session: Session, axis: str) -> bool:
        return len(axes[axis]) == 1 or bool(parts & _called(session, axis))

    def joined(session: Session) -> set[str]:
        pairs = [(a, b) for a in _called(session, KINDS[0]) for b in _called(session, KINDS[1])]
        return {f"{a}{sign}{b}" for sign in "_-" for one in pairs for a, b in (one, one[::-1])}

    found = [one for one in sessions if parts & {one.name, *joined(one)}]
    found = found or [one for one in sessions if named(one, "policy") and named(one, "environment")]
    if len(found) > 1:  # a folder for each of its seeds
        found = [one for one in found if {f"seed{one.seed}", f"seed_{one.seed}", f"seed-{one.seed}"} & parts]
    return found[0] if len(found) == 1 else None


def names_of_path(name: PurePosixPath, sessions: Sequence[Session]) -> tuple[str | None, str | None]:
    """The policy and the environment of the grid that a path names; the rows must then name the other one."""
    return _own("policy", _parts(name), sessions), _own("environment", _parts(name), sessions)


def _own(axis: str, parts: set[str], sessions: Sequence[Session]) -> str | None:
    named = {getattr(one, axis) for one in sessions}
    own = named if len(named) == 1 else {getattr(one, axis) for one in sessions if parts & _called(one, axis)}
    return next(iter(own)) if len(own) == 1 else None


def not_in_paths(directory: Path, unread: Sequence[Reading], sessions: Sequence[Session]) -> Iterator[Defect]:
    """Names in the paths of files which name no combo, where the grid has others, with the line that maps them."""
    for axis in KINDS:
        known = list(dict.fromkeys(getattr(one, axis) for one in sessions))
        found = [(one, _Levels(one.path, axis, sessions)) for one in unread]
        lacking = [(one, levels) for one, levels in found if levels.names and not levels.named]
        if len(known) == 1 or not lacking:
            continue
        first, levels = lacking[0]
        tried = ({**levels.other, axis: known[0]}, levels.other)  # rows may name it themselves
        if [_counts(directory, first, sessions, names) for names in tried] != [True, False]:
            continue
        at = _varying([levels.names for _, levels in lacking], outward=axis == KINDS[0])
        named = list(dict.fromkeys(levels.names[at] for _, levels in lacking))
        values = renamed(named, [name for name in known if name not in {levels.named for _, levels in found}])
        keys = {"keys": [{"key": axis, "value": {"values": values}}]} if values else {}
        rows = sum(len(one.rejects) for one, _ in lacking)
        fields: dict[str, Any] = {"named": named[:_NAMES_SHOWN], "known": known[:_NAMES_SHOWN], **keys}
        yield Defect(first.path, 0, say(Fact(NOT_IN_GRID, kind=axis, rows=rows, **fields)))


class _Levels:
    """The names in a path that may be one of an axis."""

    def __init__(self, path: str, axis: str, sessions: Sequence[Session]) -> None:
        name = PurePosixPath(path)
        beside = KINDS[axis == KINDS[0]]
        others = {called: getattr(one, beside) for one in sessions for called in _called(one, beside)}
        self.named = _own(axis, _parts(name), sessions)
        """the name of the grid that the path says"""
        self.names: list[str] = []
        self.other: dict[str, str] = {}
        """the name on the other axis, which stands beside or in one of these"""
        for part in saying_names(path):
            rest, other = _apart(part, others)
            self.names += [rest] if rest else []
            self.other.update({beside: others[other]} if other else {})


def _apart(part: str, others: Iterable[str]) -> tuple[str, str]:
    """`pi0-base` and `hall` of `pi0-base_hall`."""
    for name in others:
        if _cleaned(part) == name:
            return "", name
        for sign in "_-":
            if part.endswith(f"{sign}{name}") or part.startswith(f"{name}{sign}"):
                return part.removesuffix(f"{sign}{name}").removeprefix(f"{name}{sign}"), name
    return part, ""


def _counts(directory: Path, reading: Reading, sessions: Sequence[Session], names: Mapping[str, str]) -> bool:
    """Whether rows of a file are of planned combos if its path names these."""
    context = Context(reading.path, names.get(KINDS[0]), names.get(KINDS[1]), rules_of_rows(sessions[0].results))
    collector = RecordCollector(directory)
    collector.read_file(directory / reading.path, context, expected=True)
    planned = {combo_of(one) for one in sessions}
    return any(one.combo in planned for file in collector.files for one in file.entries)


def rules_of_rows(rules: ResultRules) -> ResultRules:
    """The rules for a file whose path names no combo: its rows may name any of them."""
    fields = {kind: getattr(rules, kind) for kind in KINDS}
    return rules.replace(**{kind: field.name for kind, field in fields.items() if field.values})


def _varying(levels: Sequence[Sequence[str]], *, outward: bool) -> int:
    """The level at which the names differ: the first one, or the last one; else the first level."""
    least = min(map(len, levels))
    varying = [at for at in range(least) if len({one[at] for one in levels}) > 1]
    return (varying or [0])[0 if outward else -1]


def _parts(name: PurePosixPath) -> set[str]:
    return {*map(_cleaned, name.parts[:-1]), _cleaned(stem_of(name))}


def _called(session: Session, axis: str) -> set[str]:
    """What a path may call the policy or the environment of a session."""
    return {*map(_cleaned, (getattr(session, axis), *getattr(session.results, axis).values))} - {""}


def _cleaned(name: str) -> str:
    """The text as it would be in a folder's name; empty if it can't be."""
    try:
        return clean(name)
    except UserError:
        return ""
