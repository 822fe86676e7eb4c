"""Names of policies and environments in rows: columns with another name that hold them, and names that the grid does
not know. For both it proposes the lines of `results:` that read them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from comborun.model.attempt import Aggregate, EpisodeRecord
from comborun.model.plan import Session
from comborun.model.work import combo_of
from comborun.reporter.records.collector import RecordCollector
from comborun.reporter.records.path_names import KINDS
from comborun.reporter.records.path_parts import COLUMNS, OF_ENVIRONMENTS, policy_of_path
from comborun.reporter.records.reading import UNNAMED, Context, Defect, Reading
from comborun.rules.facts import Fact
from comborun.rules.results.counts import IN_COLUMNS, NOT_IN_GRID
from comborun.rules.results.fields import IGNORE, LINE, ResultRules
from comborun.rules.results.proposals import renamed
from comborun.words import say

BY_COLUMN = "environments_by_column"
_NAMES_SHOWN = 10
_VALUES_MOST = 100


def names_in_rows(sessions: Iterable[Session]) -> dict[str, dict[str, str]]:
    """By kind: what rows call a policy or an environment -> its name in the grid, where that is clear."""
    found: dict[str, dict[str, str]] = {}
    for kind in KINDS:
        told: defaultdict[str, set[str]] = defaultdict(set)
        for session in sessions:
            for value in getattr(session.results, kind).values:
                told[value].add(getattr(session, kind))
        found[kind] = {value: next(iter(own)) for value, own in told.items() if len(own) == 1}
    return found


def name_by_columns(files: Iterable[Reading]) -> None:
    """Take the environments from a column such as `env` where only a path names one: if it has several values in a
    file, or all files have one and all paths name the same environment. Else it may hold what all have in common, such
    as the name of a class, or tell only in which order paths name.
    """
    guessed = [file for file in files if file.records and any(kind == "environment" for kind, _ in file.guessed)]
    by_path = {name for file in guessed for kind, name in file.guessed if kind == "environment"}
    columns = [
        next((column for column in OF_ENVIRONMENTS if all(_is_name(one.field(column)) for one in file.records)), "")
        for file in guessed
    ]
    alike = len(by_path) == 1 and all(columns)
    for file, column in zip(guessed, columns, strict=True):
        values = {str(one.field(column)) for one in file.records} if column else set[str]()
        if len(values) > 1 or alike:
            _name_by(file, column, values)


def _is_name(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip()) and not value.isdecimal()


def _name_by(file: Reading, column: str, values: Collection[str]) -> None:
    asked = any(kind == "policy" for kind, _ in file.guessed)
    by_path = policy_of_path(file.path, values) if asked else ""
    file.records = [
        replace(one, policy=by_path or one.policy, environment=str(one.field(column))) for one in file.records
    ]
    file.codings = {
        (session, (by_path or combo[0], value), attempt): coding
        for (session, combo, attempt), coding in file.codings.items()
        for value in values
    }
    file.guessed = {("policy", by_path)} if asked else set()
    file.defect(0, say(Fact(BY_COLUMN, column=column, environments=sorted(values)[:_NAMES_SHOWN])))


def not_in_grid(readings: Sequence[Reading], sessions: Sequence[Session]) -> Iterator[Defect]:
    """Rows whose policy or environment no session has, with the names that the grid could give them."""
    entries: list[EpisodeRecord | Aggregate] = [one for reading in readings for one in reading.entries]
    for kind in KINDS:
        known = dict.fromkeys(getattr(one, kind) for one in sessions)
        told = Counter(getattr(one, kind) for one in entries)
        if named := [name for name in told if name not in known and name != UNNAMED]:
            fields: dict[str, Any] = {"named": named[:_NAMES_SHOWN], "known": list(known)[:_NAMES_SHOWN]}
            if any(_joins(one, kind, known) for one in readings):
                fields["joins"] = True
            elif values := renamed(named, [name for name in known if name not in told]):
                fields["keys"] = [{"key": kind, "value": {"values": values}}]
            where = next(one.source for one in entries if getattr(one, kind) in named)
            yield Defect(where, 0, say(Fact(NOT_IN_GRID, kind=kind, rows=sum(told[name] for name in named), **fields)))


def _joins(reading: Reading, kind: str, known: Iterable[str]) -> bool:
    """Whether all rows of a file have a name that its path gives, and repeat their episodes: they may be of several
    combos, and a mapping would make one of them."""
    names = {getattr(one, kind) for one in reading.records}
    if len(names) != 1 or names <= {*known} or not names <= {*_parts(reading.path)}:
        return False
    return len({(one.combo, one.episode) for one in reading.records}) < len(reading.records)


def _parts(path: str) -> Iterator[str]:
    for part in PurePosixPath(path).parts:
        yield from (part, part.partition(".")[0], PurePosixPath(part).stem)


def other_columns(path: Path, reading: Reading, rules: ResultRules, sessions: Sequence[Session]) -> Fact | None:
    """That rows name their combos in columns that the grid does not name, with the line that does, tried on the
    file."""
    planned = {combo_of(one) for one in sessions}
    if not reading.rejects and all(one.combo in planned for one in reading.entries):
        return None
    held = _columns(_again(path, rules.replace(policy=IGNORE, environment=IGNORE, episode=LINE)))
    values: dict[str, dict[str, Any]] = {}
    for kind in KINDS:
        used = {value["field"] for value in values.values()}
        if getattr(rules, kind).name not in held:
            others = {name: named for name, named in held.items() if name not in used}
            values.update({kind: one} if (one := _column(kind, others, sessions)) else {})
    if not values:
        return None
    told = {kind: value if "values" in value else value["field"] for kind, value in values.items()}
    tried = _again(path, rules.replace(**{kind: value["field"] for kind, value in values.items()}))
    names = {kind: {said: own for own, said in value.get("values", {}).items()} for kind, value in values.items()}
    tried.translate({**{kind: {} for kind in KINDS}, **names})
    unclear = any("NAME" in value.get("values", {}) for value in values.values())
    before = sum(one.combo in planned for one in reading.records)
    if not unclear and sum(one.combo in planned for one in tried.records) <= before:
        return None
    columns = [value["field"] for value in values.values()]
    keys = [{"key": kind, "value": value} for kind, value in told.items()]
    return Fact(IN_COLUMNS, kinds=list(values), columns=columns, keys=keys, unclear=unclear)


def _again(path: Path, rules: ResultRules) -> Reading:
    names = dict.fromkeys(KINDS, UNNAMED if rules.policy.word else None)
    collector = RecordCollector(path.parent)
    collector.read_file(path, Context(path.name, rules=rules, **names), expected=True)
    return next(iter(collector.files), Reading(path.name))


def _columns(reading: Reading) -> dict[str, list[str]]:
    """The columns with a text in each row, and their values."""
    found: dict[str, dict[str, None]] = {}
    for at, record in enumerate(reading.records):
        texts = {name: value for name, value in record.extra.items() if isinstance(value, str) and value}
        found = {name: found[name] for name in found if name in texts} if at else {name: {} for name in texts}
        for name, values in found.items():
            values[texts[name]] = None
    return {name: list(values) for name, values in found.items() if len(values) <= _VALUES_MOST}


def _column(kind: str, held: Mapping[str, Sequence[str]], sessions: Sequence[Session]) -> dict[str, Any]:
    """The column that names policies or environments, with the mapping where names differ; empty if none does."""
    known = list(dict.fromkeys(getattr(one, kind) for one in sessions))
    usual = [name for name in COLUMNS[kind] if name in held]
    for name in [*usual, *(name for name in held if name not in usual)]:
        mapped = _mapped(held[name], known)
        sure = name in usual or len(mapped) > 1 or held[name][0] in known
        if len(mapped) == len(held[name]) and sure:
            values = {own: said for own, said in mapped.items() if own != said}
            return {"field": name, "values": values} if values else {"field": name}
    several = next((name for name in usual if len(held[name]) > 1), "")
    return {"field": several, "values": {"NAME": held[several][0]}} if several else {}


def _mapped(named: Sequence[str], known: Sequence[str]) -> dict[str, str]:
    """Names of the grid -> what rows say, exactly, but for case and signs, or by their letters."""
    found = {one: one for one in named if one in known}
    for one in named:
        alike = [name for name in known if _letters(name) == _letters(one)]
        if one not in found and len(alike) == 1 and alike[0] not in found:
            found[alike[0]] = one
    others = [one for one in named if one not in found.values()]
    free = [name for name in known if name not in found]
    return {**found, **(renamed(others, free) if len(free) > 1 or len(known) > 1 else {})}


def _letters(name: str) -> str:
    return "".join(one for one in name.casefold() if one.isalnum())
