"""Episodes that a document holds without an object for each: lists and maps of verdicts, of numbers, tables by columns.
Pure.
"""

from __future__ import annotations

import re

from comborun.rules.results.codings import verdict_word
from comborun.rules.results.fields import TEXT_MOST, integer
from comborun.rules.results.proposals import SCORES, VALUE
from comborun.rules.results.stated_counts import DEPTH, entries

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Tuple

    from comborun.rules.results.fields import Identity

    Row = dict[str, Any]
    Path = Tuple[str, ...]

FITS, PARTLY, ARRAYS, SINGLE, NAMED = range(5)
"""how surely a candidate holds episodes. Of lists that only have a fitting name, the outermost ones count"""
EPISODE_LISTS = ("episodes", "episode_results", "per_episode", "rollouts", "trials", "records", "runs", "results")
"""names of a list with one object for each episode"""
WORDS_MOST = 200
"""characters of a text that a document states for all its episodes"""
INDEX_KEY = re.compile(r"[A-Za-z_ .-]*(\d{1,9})")


class Candidate:
    def __init__(self, rank: int, path: Path, rows: list[Any], bare: bool = False) -> None:
        self.rank, self.path, self.rows = rank, path, rows
        self.bare = bare
        """whether its objects hold a verdict and nothing else"""

    @property
    def about(self) -> str:
        return f"{'.'.join(self.path)[:TEXT_MOST] or 'the whole'}: {len(self.rows)}"


_INDEX_NAME = re.compile(r"(?i)(?:episodes?|eps?|trials?|rollouts?|demos?|traj(?:ectory)?|idx|i)?[ _.-]*\d{1,9}")
_TELLS = re.compile(r"(?i)succ|verdict|outcome|solved|passed|achieved|reached")


def tells(path: Path, identity: Identity, several: bool = False) -> bool:
    """Whether names on the way to bare truths say that these are verdicts: a flag of settings looks the same. The last
    name may be one of the plan, or, over `several`, that of a list of episodes.
    """
    own = (identity.policy, identity.environment, *identity.policy_field.values, *identity.environment_field.values)
    last = path[-1] if path else ""
    return any(map(_TELLS.search, path)) or last in own or (several and last.lower() in EPISODE_LISTS)


def flat(value: Any, identity: Identity, file: str = "") -> list[Candidate]:
    """Lists and maps of bare verdicts, as truths or as words, if they are as many as planned, or indexes tell them."""
    found: list[Candidate] = []
    name = file.rpartition("/")[2].partition(".")[0]
    open_: list[tuple[Path, Any]] = [((), value)]
    while open_:
        path, one = open_.pop()
        inner = dict(entries(one)) if isinstance(one, (dict, list)) and one else {}
        pairs = isinstance(one, list) and all(isinstance(two, list) and len(two) == 2 and _told(two[1]) for two in one)
        bits = isinstance(one, list) and all(integer(two) in (0, 1) for two in one)
        if inner and (pairs or bits or all(map(_told, inner.values()))):
            numbers = [two[0] for two in one] if pairs else [INDEX_KEY.fullmatch(key) for key in inner]
            indexed = isinstance(one, dict) and all(numbers)
            told = pairs or tells((name, *path), identity, len(inner) > 1 and bool(path))
            told = told or (not path if isinstance(one, list) else all(map(_INDEX_NAME.fullmatch, inner)))
            rows = _bare(inner, numbers, identity) if pairs or indexed else []
            rows = rows or [{"name": key[:WORDS_MOST], identity.success.name: two} for key, two in inner.items()]
            if told and (len(rows) == identity.planned or (indexed and not identity.planned)):
                found.append(Candidate(ARRAYS, path, rows))
        elif len(path) < DEPTH:
            open_ += [((*path, key), two) for key, two in inner.items() if isinstance(two, (dict, list))]
    return found


def _bare(entries: Row, numbers: list[Any], identity: Identity) -> list[Row]:
    """The rows of verdicts with these numbers; none if the numbers are not those of episodes."""
    indexes = [int(one.group(1)) if isinstance(one, re.Match) else integer(one) for one in numbers]
    if None in indexes or len({*indexes}) < len(indexes):
        return []
    verdicts = (two[1] if isinstance(two, list) else two for two in entries.values())
    return [{identity.episode.name: at, identity.success.name: two} for at, two in zip(indexes, verdicts)]


def _told(value: Any) -> bool:
    return isinstance(value, bool) or (isinstance(value, str) and isinstance(verdict_word(value.lower()), bool))


def as_rows(value: Any) -> Any:
    """The rows of a document that holds a table by its columns, as pandas writes it; any other document unchanged."""
    if not isinstance(value, dict):
        return value
    names, data = value.get("columns"), value.get("data")
    if isinstance(names, list) and isinstance(data, list) and all(isinstance(one, str) for one in names):
        rows = all(isinstance(row, list) and len(row) == len(names) for row in data)
        return [dict(zip(names, row)) for row in data] if rows else value
    columns = list(value.values())
    alike = len(columns) > 1 and all(isinstance(one, dict) and list(one) == list(columns[0]) for one in columns)
    cells = ((key, one) for held in columns for key, one in held.items()) if alike else ()
    if not alike or any(isinstance(one, (dict, list)) or not key.isdigit() for key, one in cells):
        return value
    return [{name: held[key] for name, held in value.items()} for key in columns[0]]


def measures(value: Any, identity: Identity) -> list[Candidate]:
    """Episodes that have numbers and no verdicts: lists called returns, or lists of as many numbers as are planned."""
    while isinstance(value, dict) and len(value) == 1 and isinstance(inner := next(iter(value.values())), dict):
        value = inner
    lists = {key: one for key, one in value.items() if _numbers(one)} if isinstance(value, dict) else {}
    first = next((key for key in lists if SCORES.search(key)), "")
    if first and identity.planned in (0, len(lists[first])):
        columns = {key.rstrip("s"): one for key, one in lists.items() if len(one) == len(lists[first])}
        rows = [{key: one[at] for key, one in columns.items()} for at in range(len(lists[first]))]
        return [Candidate(NAMED, (first,), rows)]
    if _numbers(value) and len(value) == identity.planned:
        return [Candidate(NAMED, (), [{VALUE: one} for one in value])]
    bits = all(integer(two) in (0, 1) for held in lists.values() for two in held)
    others = [one for key, one in value.items() if key not in lists] if isinstance(value, dict) else []
    whole = not (any(isinstance(one, (dict, list)) for one in others) if bits else others)
    if lists and whole and sum(map(len, lists.values())) == identity.planned:
        return [Candidate(NAMED, (), [{"task": key, VALUE: one} for key, held in lists.items() for one in held])]
    return []


def _numbers(value: Any) -> bool:
    told = value if isinstance(value, list) else []
    return bool(told) and all(isinstance(one, float) or integer(one) is not None for one in told)


def all_verdicts(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(one is None or one in (0, 1) for one in value)


def all_truths(value: list[Any]) -> bool:
    return bool(value) and all(isinstance(one, bool) for one in value)
