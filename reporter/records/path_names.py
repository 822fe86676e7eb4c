"""What the paths of a folder's files say by the names of a grid: a session, one of its two names, or unknown ones."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path, PurePosixPath
from typing import Any

from comborun.errors import UserError
from comborun.model.plan import Session
from comborun.model.work import combo_of
from comborun.reporter.records.collector import RecordCollector
from comborun.reporter.records.path_parts import saying_names, stated, stem_of, without_date
from comborun.reporter.records.reading import Context, Defect, Reading
from comborun.rules.facts import Fact
from comborun.rules.results.counts import NOT_IN_GRID
from comborun.rules.results.fields import ResultRules
from comborun.rules.results.proposals import renamed
from comborun.text import clean
from comborun.words import say

KINDS = ("policy", "environment")
_NAMES_SHOWN = 10
AXIS_UNNAMED = "axis_unnamed"


class PathNames:
    """What a path may call the sessions of a plan, and their policies and environments."""

    def __init__(self, sessions: Sequence[Session]) -> None:
        self.sessions = sessions
        self.known = {axis: list(dict.fromkeys(getattr(one, axis) for one in sessions)) for axis in KINDS}
        self.called: dict[str, dict[str, set[str]]] = {axis: defaultdict(set) for axis in KINDS}
        """by axis: what a path calls it -> its names in the grid"""
        self._sessions: defaultdict[str, list[Session]] = defaultdict(list)
        self._combos: defaultdict[tuple[str, str], list[Session]] = defaultdict(list)
        for one in sessions:
            named = [(getattr(one, axis), *getattr(one.results, axis).values) for axis in KINDS]
            names = [[*map(_cleaned, called)] for called in named]
            for axis, called in zip(KINDS, names, strict=True):
                for name in filter(None, called):
                    self.called[axis][name].add(getattr(one, axis))
            pairs = [pair for a in names[0] for b in names[1] for pair in ((a, b), (b, a))]
            for whole in {one.name, *(f"{a}{sign}{b}" for sign in ("_", "-", "__") for a, b in pairs)}:
                self._sessions[whole].append(one)
            self._combos[one.policy, one.environment].append(one)

    def session(self, name: PurePosixPath) -> Session | None:
        """The session whose combo a path names: by both of its names, or by the one that tells it from the others."""
        return self._session(_parts(name)) or self._session(_looser_parts(name))

    def _session(self, parts: set[str]) -> Session | None:
        found = list({one.name: one for part in parts for one in self._sessions.get(part, ())}.values())
        pairs = product(*(self._named(axis, parts) for axis in KINDS))
        found = found or [one for policy, environment in pairs for one in self._combos.get((policy, environment), ())]
        if len(found) > 1:  # a folder for each of its seeds
            found = [one for one in found if {f"seed{one.seed}", f"seed_{one.seed}", f"seed-{one.seed}"} & parts]
        return found[0] if len(found) == 1 else None

    def of_path(self, name: PurePosixPath) -> tuple[str | None, str | None]:
        """The policy and the environment of the grid that a path names; the rows must then name the other one."""
        return self.own("policy", name), self.own("environment", name)

    def own(self, axis: str, name: PurePosixPath) -> str | None:
        named = self._named(axis, _parts(name)) or self._named(axis, _looser_parts(name))
        return next(iter(named)) if len(named) == 1 else None

    def plans(self, reading: Reading) -> bool:
        """Whether a combo of these rows is planned."""
        return any(combo in self._combos for combo in reading.combos)

    def _named(self, axis: str, parts: set[str]) -> set[str]:
        if len(self.known[axis]) == 1:
            return {*self.known[axis]}
        return {own for part in parts for own in self.called[axis].get(part, ())}


def named_by_path(reading: Reading) -> bool:
    """Whether its rows name neither a policy nor an environment, so that both are guesses, and are of one combo."""
    return reading.named_by_path and len({one.episode for one in reading.records}) == len(reading.records)


def unnamed(unread: Sequence[Reading], names: PathNames) -> Iterator[Defect]:
    """That neither the rows nor the path of files name a policy, or an environment, where the grid has several."""
    for axis in KINDS:
        reason = say(Fact("names_none", kind=axis))
        lacking = [one for one in unread if one.rejects and all(reject.reason == reason for reject in one.rejects)]
        if lacking and len(names.known[axis]) > 1:
            fields = {"kind": axis, "files": len(lacking), "known": names.known[axis][:_NAMES_SHOWN]}
            yield Defect(lacking[0].path, 0, say(Fact(AXIS_UNNAMED, **fields)))


def not_in_paths(directory: Path, unread: Sequence[Reading], names: PathNames) -> Iterator[Defect]:
    """Names in the paths of files which name no combo, where the grid has others, with the line that maps them."""
    neither = [one for one in unread if all(_unknown(one, axis, names) for axis in KINDS)]
    first_names = {axis: names.known[axis][0] for axis in KINDS}
    alone = [{axis: name} for axis, name in first_names.items()]  # rows may name the other one
    if neither and _needs(directory, neither[0], names, first_names, alone):
        yield from _on_both_axes(neither, names)
        unread = [one for one in unread if one not in neither]
    for axis in KINDS:
        known = names.known[axis]
        found = [(one, _Levels(one.path, axis, names)) for one in unread]
        lacking = [(one, levels) for one, levels in found if levels.names and not levels.named]
        if len(known) == 1 or not lacking:
            continue
        first, levels = lacking[0]
        if not _needs(directory, first, names, {**levels.other, axis: known[0]}, [levels.other]):
            continue
        at = _varying([levels.names for _, levels in lacking], outward=axis == KINDS[0])
        named = list(dict.fromkeys(levels.names[at] for _, levels in lacking))
        values = renamed(named, [name for name in known if name not in {levels.named for _, levels in found}])
        keys = [{"key": axis, "value": {"values": values}}] if values else []
        yield _not_in_paths([one for one, _ in lacking], axis, named, known, keys)


def _not_in_paths(
    lacking: Sequence[Reading], axis: str, named: Sequence[str], known: Sequence[str], keys: Sequence[object]
) -> Defect:
    fields: dict[str, Any] = {"named": named[:_NAMES_SHOWN], "known": known[:_NAMES_SHOWN]}
    fields |= {"keys": [*keys]} if keys else {}
    rows = sum(len(one.rejects) + len(one.entries) for one in lacking)
    return Defect(lacking[0].path, 0, say(Fact(NOT_IN_GRID, kind=axis, rows=rows, **fields)))


def _on_both_axes(lacking: Sequence[Reading], names: PathNames) -> Iterator[Defect]:
    """Of files whose paths name neither a policy nor an environment of the grid: a line maps both, or none counts."""
    ways = [[*map(dict.fromkeys, zip(*pairs, strict=True))] for pairs in _pairs([one.path for one in lacking])]
    values = [[renamed([*named], names.known[axis]) for axis, named in zip(KINDS, way, strict=True)] for way in ways]
    at = next((at for at, both in enumerate(values) if all(both)), 0)
    clear = all(values[at])
    keys = [{"key": axis, "value": {"values": one}} for axis, one in zip(KINDS, values[at], strict=True) if clear]
    for axis, named in zip(KINDS, ways[at], strict=True):
        yield _not_in_paths(lacking, axis, [*named], names.known[axis], keys)


def _pairs(paths: Sequence[str]) -> list[list[tuple[str, str]]]:
    """Ways in which paths may name a policy and an environment: in two of their parts, or in both halves of one, in
    either order."""
    levels = [saying_names(path) for path in paths]
    least = min(map(len, levels))
    varying = [at for at in range(least) if len({one[at] for one in levels}) > 1]
    ways: list[list[tuple[str, ...]]] = []
    if len(varying) > 1:
        ways = [[(one[varying[0]], one[varying[-1]]) for one in levels]]
    else:
        halves = [re.split("[_-]+", one[(varying or [-1])[0]]) for one in levels]
        ways += [[*map(tuple, halves)]] if all(len(one) == 2 for one in halves) else []
        ways += [[one[-3:-1] for one in levels]] if least > 2 else []  # every folder may have a file of this name
        ways += [[(one[0], one[-1]) if len(one) < 2 else one[-2:] for one in levels]]
    return [[(one[at], one[1 - at]) for one in way] for way in ways for at in (0, 1)]


def _unknown(reading: Reading, axis: str, names: PathNames) -> bool:
    """Whether a path has names, and none of them tells one of the several on this axis."""
    levels = _Levels(reading.path, axis, names)
    return bool(levels.names) and not levels.named and not levels.other


def _needs(
    directory: Path, reading: Reading, names: PathNames, all_of: Mapping[str, str], less: Sequence[Mapping[str, str]]
) -> bool:
    """Whether rows of a file are of planned combos if its path names all of these, and not with less."""
    return _counts(directory, reading, names.sessions, all_of) and not any(
        _counts(directory, reading, names.sessions, one) for one in less
    )


class _Levels:
    """The names in a path that may be one of an axis."""

    def __init__(self, path: str, axis: str, names: PathNames) -> None:
        beside = KINDS[axis == KINDS[0]]
        others = names.called[beside]
        self.named = names.own(axis, PurePosixPath(path))
        """the name of the grid that the path says"""
        self.names: list[str] = []
        self.other: dict[str, str] = {}
        """the name on the other axis, which stands beside or in one of these"""
        for part in saying_names(path):
            rest, other = _apart(part, others)
            self.names += [rest] if rest else []
            self.other.update({beside: next(iter(others[other]))} if other else {})


def _apart(part: str, others: Iterable[str]) -> tuple[str, str]:
    """`pi0-base` and `hall` of `pi0-base_hall`."""
    if part in others:
        return "", part
    for name in others:
        for sign in "_-":
            if part.endswith(f"{sign}{name}") or part.startswith(f"{name}{sign}"):
                return part.removesuffix(f"{sign}{name}").removeprefix(f"{name}{sign}"), name
    return part, ""


def _counts(directory: Path, reading: Reading, sessions: Sequence[Session], names: Mapping[str, str]) -> bool:
    """Whether rows of a file are of planned combos if its path names these."""
    rules = rules_of_rows(sessions[0].results)
    context = Context(reading.path, names.get(KINDS[0]), names.get(KINDS[1]), rules, planned_names=True)
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


def _looser_parts(name: PurePosixPath) -> set[str]:
    """The parts without dates, and what they state of policy and environment."""
    looser = (*map(without_date, (*name.parts[:-1], stem_of(name))), *stated(str(name)).values())
    return {*map(_cleaned, looser)}


def _cleaned(name: str) -> str:
    """The text as it would be in a folder's name; empty if it can't be."""
    try:
        return clean(name)
    except UserError:
        return ""
