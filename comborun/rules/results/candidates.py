"""Finds what looks like episodes in a document, and chooses what counts of it by the number of planned ones. Pure.

A candidate is a list of objects, an object of objects, an object with the verdict itself, lists of equal length side by
side, or k of n. How surely it holds episodes is its rank; a lower rank is surer.
"""

from __future__ import annotations

from itertools import islice

from comborun.rules.results.field_names import (
    ASIDE,
    EPISODE_NAME,
    NO_EPISODE,
    OUTCOMES,
    SETTINGS,
    STEPS,
    SUCCESS_LISTS,
)
from comborun.rules.results.fields import FORMAT, MISSING, TEXT_MOST, RefusedError, number
from comborun.rules.results.flat_lists import (
    ARRAYS,
    EPISODE_LISTS,
    FITS,
    INDEX_KEY,
    NAMED,
    PARTLY,
    SINGLE,
    WORDS_MOST,
    Candidate,
    all_truths,
    all_verdicts,
    flat,
    measures,
    tells,
)
from comborun.rules.results.proposals import VERDICT_NAMES, verdict_rule
from comborun.rules.results.rates import SHOWN
from comborun.rules.results.stated_counts import DEPTH, METRICS, SUM, are_counts, entries, opened, stated

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable, Iterator, Tuple

    from comborun.rules.results.fields import Identity

    Row = dict[str, Any]
    Path = Tuple[str, ...]

TEXTS_MOST = 50
"""such texts in one object"""


def episodes(value: Any, identity: Identity, path: str = "") -> list[tuple[Row, int | None]]:
    """The rows of the candidate that counts, with their positions; `path` is the file's.

    Raises RefusedError if there is none, or if several contradict each other.
    """
    found = _surest(value, identity, path)
    if not found and not identity.success.word:
        for name in _fields(value):  # perhaps the field of the verdict has another name
            found = _surest(value, identity.by(success=name), path)
            rows = [row for one in found for row in one.rows if isinstance(row, dict)]
            rule = verdict_rule(rows, name, apart=bool(found) and found[0].rank == SINGLE)
            if rule and identity.policy is None:
                keys = [{"key": "success", "value": rule}]
                raise RefusedError(FORMAT, "verdict_elsewhere", episodes=len(rows), keys=keys)
            if rule:
                break
            found = []
    found = found or flat(value, identity, path) or measures(value, identity)
    if not found:
        raise unknown_document(value)
    chosen = _chosen(found, identity)
    _refuse_bare(chosen, identity, path)
    if len(chosen) > 1:
        _tell_apart(chosen)
    rows = [row for one in chosen for row in one.rows]
    return [(row, None if found[0].rank == SINGLE else at) for at, row in enumerate(rows)]


def _refuse_bare(found: list[Candidate], identity: Identity, path: str) -> None:
    """Raise RefusedError for objects that hold a verdict alone, and that no name calls episodes: a setting looks the
    same. A test of the grid says that they are none."""
    folder, _, name = path.rpartition("/")
    around = (name.partition(".")[0], folder.rpartition("/")[2])
    bare = [one for one in found if one.bare and not identity.success.tests and not tells(one.path, identity)]
    bare = [one for one in bare if not any(map(OUTCOMES.fullmatch, (*one.path, *around)))]
    if bare:
        rows = [row for one in bare for row in one.rows]
        truths = all(isinstance(identity.success.find(row), bool) for row in rows)
        rule = {"any_of": ["true"]} if truths else {"at_least": 1}
        keys = [{"key": "success", "value": {"field": identity.success.name, **rule}}]
        raise RefusedError(FORMAT, "perhaps_settings", episodes=len(rows), found=[one.about for one in bare], keys=keys)


def _tell_apart(found: list[Candidate]) -> None:
    """Give the rows of several lists the name of theirs: each may have its own numbers."""
    own = {part for part in found[0].path if all(part in one.path for one in found)}
    names = [".".join(part for part in one.path if part not in own)[:WORDS_MOST] for one in found]
    held = [one.rows for one in found if all(isinstance(row, dict) for row in one.rows)]
    if len({*names}) < len(names) or len(held) < len(found):
        return
    key = "subset" if any("task" in row for rows in held for row in rows) else "task"
    for name, rows in zip(names, held):
        for row in rows:
            row.setdefault(key, name)


def _fields(value: Any) -> list[str]:
    """The fields in a document that are called like verdicts, the surest first."""
    held: set[str] = set()
    level = [value]
    for _ in range(DEPTH):
        held.update(key for one in level if isinstance(one, dict) for key in one)
        inner = (entry for one in level if isinstance(one, (dict, list)) for _, entry in entries(one))
        level = [one for one in inner if isinstance(one, (dict, list))]
    return [name for name in VERDICT_NAMES if name in held]


def spread(rows: list[Row], identity: Identity) -> list[tuple[Row, int]]:
    """The episodes of rows that each hold a list of verdicts. Raises RefusedError if they are not as many as planned:
    the verdicts may be those of steps."""
    found = list(_arrays(rows, identity, (), {}, 0))
    spread = [row for one in found for row in one.rows]
    if identity.planned and len(spread) != identity.planned:
        raise RefusedError(
            FORMAT, "lists_of_verdicts", found=[one.about for one in found[:SHOWN]], planned=identity.planned
        )
    return [(row, at) for at, row in enumerate(spread)]


def lists_verdicts(row: object, identity: Identity) -> bool:
    """Whether a row without an index holds a list of verdicts."""
    inner = [row, *row.values()] if isinstance(row, dict) and identity.episode.find(row) is MISSING else ()
    return any(isinstance(one, dict) and bool(_columns(one, identity.success.name)) for one in inner)


def _surest(value: Any, identity: Identity, path: str) -> list[Candidate]:
    found = sorted(_lists(value, identity, (), {}, 0), key=lambda one: one.rank)
    if not found or found[0].rank >= NAMED:
        found = list(_arrays(value, identity, (), {}, 0)) or _single(value, identity, path) or found
    return [one for one in found if one.rank == found[0].rank]


def _chosen(found: list[Candidate], identity: Identity) -> list[Candidate]:
    """Of candidates that are as sure as each other: all, unless these are more episodes than planned, and only one, or
    copies of it, or those of one name fit.
    """
    planned, total = identity.planned, sum(len(one.rows) for one in found)
    if not planned or total <= planned or len(found) == 1:
        return found
    by_name: dict[str, list[Candidate]] = {}
    for one in found:
        by_name.setdefault(one.path[-1] if one.path else "", []).append(one)
    groups = [group for group in by_name.values() if sum(len(one.rows) for one in group) == planned]
    groups = groups or [[one] for one in found if len(one.rows) == planned]
    groups = [group for group in groups if all(_another(one, group[0]) for one in found if one not in group)]
    alike = all([one.rows for one in group] == [one.rows for one in groups[0]] for group in groups)
    telling = groups and all(isinstance(row, dict) and len(row) > 1 for row in groups[0][0].rows)
    if groups and (len(groups) == 1 or (alike and telling)):  # such rows are equal only in copies
        return groups[0]
    if not groups and any(identity.episode.find(row) is not MISSING for row in found[0].rows if isinstance(row, dict)):
        return found  # their own indexes say which of them are planned
    names = (identity.environment, *identity.environment_field.values)
    own = [one for one in found if one.path and one.path[-1] in names]
    if len(own) == 1 and all(len(one.rows) == planned for one in found):
        return own  # the others are of other environments
    raise RefusedError(FORMAT, "several_candidates", found=[one.about for one in found[:SHOWN]], planned=planned)


def _another(one: Candidate, chosen: Candidate) -> bool:
    """Whether a list is not a part of the same evaluation: a copy, a list of other fields, or one whose name says so,
    such as a warm-up. Lists of several tasks side by side are parts of one evaluation.
    """
    if one.rows == chosen.rows or any(ASIDE.fullmatch(part) for part in one.path):
        return True
    fields = [{*row} for rows in (one.rows, chosen.rows) for row in rows[:1] if isinstance(row, dict)]
    return len(fields) == 2 and fields[0] != fields[1]


def _lists(value: Any, identity: Identity, path: Path, around: Row, depth: int) -> Iterator[Candidate]:
    """Lists and objects of objects that may be episodes."""
    inner: Iterable[tuple[str, Any]] = ()
    if isinstance(value, list):
        name = path[-1] if path and not path[-1].startswith("[") else ""
        sure = rank(value, identity, name, depth)
        if sure is not None:
            rows = [_within(around, row) if isinstance(row, dict) else row for row in value]
            yield Candidate(sure if sure < NAMED else NAMED + depth, path, rows)
        inner = ((f"[{at}]", one) for at, one in enumerate(value)) if sure is None or sure >= NAMED else ()
    elif isinstance(value, dict):
        around = {**around, **_words(value)}
        keyed = _keyed(value, identity)
        if keyed:
            own = {"name", identity.success.name.partition(".")[0]}
            bare = all({*row} <= own for row in keyed)
            yield Candidate(PARTLY, path, [_within(around, row) for row in keyed], bare)
        whole = _holds(value, identity)
        inner = () if keyed else [(key, one) for key, one in value.items() if not (whole and STEPS.fullmatch(key))]
    for key, entry in inner if depth < DEPTH else ():
        if isinstance(entry, (dict, list)):
            yield from _lists(entry, identity, (*path, key), around, depth + 1)


def _keyed(value: Row, identity: Identity) -> list[Row]:
    """The episodes of an object whose keys are their indexes or names, and whose values all hold a verdict."""
    value = {key: one for key, one in value.items() if not SUM.fullmatch(key)}
    inner = {key: one for key, one in value.items() if isinstance(one, dict) and key not in METRICS}
    indexed = {key: one for key, one in inner.items() if INDEX_KEY.fullmatch(key)}
    if indexed and not any(_holds(one, identity) for key, one in inner.items() if key not in indexed):
        inner = indexed
    if not inner or not all(_holds(one, identity) for one in inner.values()):
        return []
    numbers = [INDEX_KEY.fullmatch(key) for key in inner]
    if all(numbers):
        name = identity.episode.name
        indexes = [int(found.group(1)) for found in numbers if found]
        return [{name: at, **row} for at, row in zip(indexes, inner.values())] if len({*indexes}) == len(inner) else []
    alike = not identity.success.word or len({frozenset(row) for row in inner.values()}) == 1
    named = alike and 1 < len(inner) == len(value)
    return [{"name": key[:WORDS_MOST], **row} for key, row in inner.items()] if named else []


def _holds(row: Row, identity: Identity) -> bool:
    """Whether this is one episode: it has the grid's field of the verdict, with one value."""
    if identity.success.word:
        return any(number(one) is not None for one in opened(row).values())
    held = identity.success.find(opened(row))
    counted = not isinstance(held, bool) and identity.episode.find(row) is MISSING and stated(row) is not None
    return held is not MISSING and not isinstance(held, (dict, list)) and not counted


def _single(value: Any, identity: Identity, path: str) -> list[Candidate]:
    """A document that is one episode. Its index is in its field, else in the name of the file or folder."""
    alone = True
    beside: list[Row] = []
    way: list[str] = []
    while isinstance(value, dict) and not _holds(value, identity):
        inner = {key: one for key, one in value.items() if isinstance(one, dict) and not SUM.fullmatch(key)}
        alone = alone and len(value) == 1
        beside, holding = [*inner.values()], [key for key, one in inner.items() if _holds(one, identity)]
        if len(holding) == 1 < len(inner):
            inner = {key: inner[key] for key in holding if not (ASIDE.fullmatch(key) or SETTINGS.fullmatch(key))}
        way += inner if len(inner) == 1 else ()
        value = next(iter(inner.values())) if len(inner) == 1 else None
    if not isinstance(value, dict) or not (alone or isinstance(identity.success.find(value), bool)):
        return []
    row, field = _within({}, value), identity.episode
    told = [index for one in beside if (index := field.find(one)) is not MISSING]
    if field.find(row) is MISSING and not field.word and len(told) == 1:
        row[field.name] = told[0]
    if field.find(row) is MISSING and not field.word:
        index = _number_in(path)
        if index is None and identity.planned == 1:
            index = field.origin
        if index is not None:
            row[field.name] = index
    bare = bool(way) and {*value} <= {identity.success.name.partition(".")[0]}
    return [Candidate(SINGLE, tuple(way), [row], bare)]


def _number_in(path: str) -> int | None:
    """The episode's number in the name of a file, else of its folder: `episode_7.json`, `trial-7/result.json`."""
    folder, _, name = path.rpartition("/")
    for part in (name.partition(".")[0], folder.rpartition("/")[2]):
        found = None if NO_EPISODE.fullmatch(part) else EPISODE_NAME.fullmatch(part)
        if found:
            return int(found.group(1))
    return None


def _within(around: Row, row: Row) -> Row:
    """An episode with what its document states for all of them.

    vla-eval (results/collector.py) counts no verdict of an episode that its infrastructure broke off, even if there is
    one.
    """
    if "harness_version" in around and row.get("failure_reason"):
        row = {name: entry for name, entry in row.items() if name not in METRICS}
    return {**around, **opened(row)}


def rank(value: list[Any], identity: Identity, name: str, depth: int) -> int | None:
    """How surely a list under this name holds episodes; None: it doesn't."""
    row = next((one for one in value if isinstance(one, dict)), None)
    if row is None:
        return None
    if are_counts(value, identity):
        return None
    row = opened(row)
    held = [field.name if field.word else field.find(row) for field in (identity.success, identity.episode)]
    if MISSING not in held and not all(isinstance(one, list) for one in held):
        return FITS
    parts = (entry for key, entry in row.items() if isinstance(entry, list) and not STEPS.fullmatch(key))
    nested = any(isinstance(one, dict) for entry in parts for one in entry)
    if held[0] is not MISSING and not isinstance(held[0], list) and not identity.success.word and not nested:
        return PARTLY
    named = name.lower() in EPISODE_LISTS or depth == 0
    arrays = any(isinstance(row.get(key), (list, dict)) for key in SUCCESS_LISTS)
    return NAMED if named and not nested and not arrays else None


def _words(value: Row) -> Row:
    """The texts that a document states for all its episodes: the task, the policy."""
    texts = ((key, one) for key, one in value.items() if isinstance(one, str) and len(one) <= WORDS_MOST)
    return dict(islice(texts, TEXTS_MOST))


def _arrays(value: Any, identity: Identity, path: Path, around: Row, depth: int) -> Iterator[Candidate]:
    """The episodes of objects that hold a list of verdicts, and perhaps other lists of the same length."""
    if depth > DEPTH:
        return
    if isinstance(value, list):
        for at, entry in enumerate(value):
            yield from _arrays(entry, identity, (*path, f"[{at}]"), around, depth + 1)
    elif isinstance(value, dict):
        words = {**around, **_words(value)}
        columns = _columns(value, identity.success.name)
        if columns:
            held = range(len(columns[identity.success.name]))
            rows = [{**words, **{name: column[at] for name, column in columns.items()}} for at in held]
            yield Candidate(ARRAYS, path, rows)
            return
        truths = bool(value) and all(isinstance(one, list) and all_truths(one) for one in value.values())
        if truths and _by_task(value, identity, path):
            for name, verdicts in value.items():
                rows = [{**words, "task": name, identity.success.name: one} for one in verdicts]
                yield Candidate(ARRAYS, (*path, name), rows)
            return
        for name, entry in value.items():
            if isinstance(entry, (dict, list)):
                inner = {**words, "task": name} if isinstance(entry, dict) and name not in METRICS else words
                yield from _arrays(entry, identity, (*path, name), inner, depth + 1)


def _by_task(value: dict[str, list[Any]], identity: Identity, path: Path) -> bool:
    """Whether lists of truths are the verdicts of tasks, and no flags: names say so, or they are the whole document, as
    long as each other, and enough."""
    sizes = [*map(len, value.values())]
    alone = not path and len({*sizes}) == 1 < len(sizes) and sum(sizes) >= identity.planned
    return alone or tells(path, identity) or all(tells((name,), identity) for name in value)


def _columns(value: Row, key: str) -> dict[str, list[Any]]:
    """The verdicts under `key` (one list, or one for each task, joined), and the lists of the same length."""
    for name in (key, *SUCCESS_LISTS):
        verdicts = value.get(name)
        if isinstance(verdicts, list) and all_verdicts(verdicts):
            count = len(verdicts)
            same = {one: entry for one, entry in value.items() if isinstance(entry, list) and len(entry) == count}
            return {**same, key: verdicts}
        if isinstance(verdicts, dict) and verdicts and all(map(all_verdicts, verdicts.values())):
            tasks = [task for task, entries in verdicts.items() for _ in entries]
            return {"task": tasks, key: [one for entries in verdicts.values() for one in entries]}
    return {}


def _keys(value: Row) -> list[str]:
    return [str(key)[:TEXT_MOST] for key in list(value)[:SHOWN]]


def unknown_document(value: object) -> RefusedError:
    """The refusal of a document in which no episodes are found; it names what is in it, or what is empty."""
    held = value if isinstance(value, dict) else {}
    within = {key: one for key, one in held.items() if isinstance(one, (list, dict))}
    if value == [] or (within and not any(within.values())):
        return RefusedError(FORMAT, "empty_list", keys=_keys(within))
    if isinstance(value, list):
        first = next((one for one in value if isinstance(one, dict)), {})
        return RefusedError(FORMAT, "unknown_list", entries=len(value), keys=_keys(first))
    if not held:
        return RefusedError(FORMAT, "unknown_format")
    inner = {key: 0 for one in held.values() if isinstance(one, dict) for key in one}
    return RefusedError(FORMAT, "unknown_document", keys=_keys(held), inner=_keys(inner))
