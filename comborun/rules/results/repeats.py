"""Why several rows have one index: they repeat an episode, or each task, scene or file numbers its own. Pure."""

from __future__ import annotations

import re
from itertools import combinations

from comborun.rules.patterns import late
from comborun.rules.results.episodes import COPY
from comborun.rules.results.fields import INDEX, MISSING, TEXT_MOST, RefusedError
from comborun.rules.results.one_row import verdict_of
from comborun.rules.vocabulary import word_set

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable, Sequence, Tuple

    from comborun.rules.results.counts import Span
    from comborun.rules.results.fields import Field, Identity

    Told = Tuple[str, int, dict[str, Any]]
    """a row's file, its index, and its fields that could name what it belongs to"""

ROWS_MOST = 2000
"""rows of a file that are looked at"""
_FIELDS_MOST = 40
_PAIRS_MOST = 12
FILE, STEPS = "file", "steps"
CONTESTED, COUNTED = "contested", "counted"
_WORD = late(r"[A-Z]?[a-z]+|[A-Z]+|\d+")
_NAMES = word_set(
    "episode ep trial rollout task scene env environment house room level map id idx index i e n t number"
    " instance inst layout object obj variant subset suite split goal instruction init state rank shard worker"
    " case epoch checkpoint ckpt phase mode subtask annotator rater reviewer"
)
"""words in the names of fields that tell one episode from another"""
_PARTS = word_set("robot agent arm hand player camera cam view phase subtask stage annotator rater reviewer judge")
"""words in the names of fields of which one episode may have several"""
_WITHIN = word_set("index idx id i n t e number state init episode ep")
"""words that the fields of steps have too"""
_TRIES = word_set("attempt attempts retry retries try tries")
_AGAIN = _TRIES | word_set("run rerun time timestamp date version created started")
"""words in the names of fields that differ when an episode runs again"""
_PARALLEL = late(r"(?:.*[^a-z])?(?:rank|shard|seed|worker|gpu|proc|process|device|replica)s?[-_=]?\d+", re.IGNORECASE)
"""a part of a path that says that several processes wrote such files"""
_COPY_OF = late(
    r"(?:^|[^a-z])(?:cop(?:y|ies)|backup|bak|old|prev(?:ious)?|latest|last|final|all|merged|combined|tmp|resumed?)(?:[^a-z]|$)"
    r"|\(\d+\)",
    re.IGNORECASE,
)
"""a path that says that a file repeats another one"""


STEP = late(r"(?:^|_)(?:time_?)?(?:steps?|frames?|ticks?|t)(?:_?(?:id|idx|index|num|number))?$", re.IGNORECASE)
"""a field that counts the steps of an episode"""


class Kept(list):  # type: ignore[type-arg]
    """Rows of a file. They never change, so a copy of the counts shares them."""

    def __deepcopy__(self, memo: object) -> Kept:
        return Kept(self)

    def add(self, index: int, row: dict[str, Any]) -> None:
        if len(self) < ROWS_MOST:
            fields = ((key, row[key]) for key in list(row)[:_FIELDS_MOST])
            told = {key: one for key, one in fields if isinstance(one, (str, int, float))}
            self.append((index, {key: one[:TEXT_MOST] if isinstance(one, str) else one for key, one in told.items()}))


def why_repeated(files: Iterable[tuple[str, Kept]], identity: Identity, span: Span) -> dict[str, Any]:
    """The fields of a fact about rows that repeat an index: by which field or file they differ, and the line that
    numbers them, if as many are planned. Empty if they are repetitions.
    """
    told = [(path, index, row) for path, kept in files for index, row in kept]
    planned = span[1] or len(told)
    if len({index for _, index, _ in told}) == len(told) or identity.episode.names:
        return {}
    own = (identity.success, identity.policy_field, identity.environment_field, identity.seed)
    held = ({name for name, one in row.items() if not isinstance(one, float)} for _, _, row in told)
    shared = set.intersection(*held).difference(field.name for field in own)
    steps = _of_steps(told, identity)
    if steps and not any(_places(name) and _tells(told, name) for name in shared):
        if pair := _product(told, shared | {identity.seed.name}, planned):
            return _numbered(list(pair), " and ".join(pair))
        episodes = len({(path, index) for path, index, _ in told})
        return {"by": STEPS, "episodes": episodes, "planned": planned, "contested": steps == CONTESTED}
    if _copied(told, shared | {identity.success.name}, planned):
        return {}
    known = shared - {identity.episode.name}
    names = sorted(known, key=lambda name: (not _words(name) & _NAMES, len({row[name] for _, _, row in told}), name))
    names = [name for name in names if not _words(name) & _AGAIN]
    if len(told) > planned:  # so only a name or a text can show that they are no repeats
        texts = {name for name in names if all(isinstance(row[name], str) for _, _, row in told)}
        names = [name for name in names if _words(name) & _NAMES or name in texts]
    by = next((name for name in names if _tells(told, name)), "")
    found: dict[str, Any] = {}
    if by and identity.episode.name in shared:
        found = _numbered([by, identity.episode.name], by)
    elif by:
        found = _numbered("line", by)
    elif not (found := _by_file(told, planned, identity)) and len(told) <= planned:
        named = [name for name in names if _words(name) & _NAMES][:_PAIRS_MOST]
        pair = next((pair for pair in combinations(named, 2) if _unique(told, pair)), None)
        found = _numbered(list(pair), " and ".join(pair)) if pair else _by_text(told, identity.episode.name)
    if len(told) < planned + len({path for path, _, _ in told}) or not found:
        return found
    return {"by": found["by"], "episodes": len(told), "planned": planned}


def within_episode(name: str) -> bool:
    """Whether a field numbers the tries or the steps of an episode, so that its rows are not episodes of their own."""
    return bool(_words(name) & _TRIES or STEP.search(name))


def apart_by(rows: Sequence[tuple[int, dict[str, Any]]]) -> str:
    """The field that tells rows of one index apart, and is named like a task, a scene or an instance, or holds texts;
    or nothing."""
    told = [("", index, row) for index, row in rows]
    shared = set.intersection(*(set(row) for _, row in rows)) if rows else set()
    texts = {name for name in shared if all(isinstance(row[name], str) for _, row in rows)}
    named = [name for name in shared if (_words(name) & _NAMES or name in texts) and not _words(name) & _AGAIN]
    named.sort(key=lambda name: (not _words(name) & _NAMES, name))
    return next((name for name in named if _tells(told, name)), "")


def of_parts(name: str) -> bool:
    """Whether a field names a part of one episode, so that its rows are no episodes."""
    return bool(_words(name) & _PARTS)


def _of_steps(told: list[Told], identity: Identity) -> str:
    """Whether the rows are steps: each episode has several rows in a row, and they differ in success, or a field counts
    them. Empty if not.
    """
    episodes: dict[tuple[str, Any], set[bool | None]] = {}
    rows: dict[tuple[str, Any], list[dict[str, Any]]] = {}
    runs, before = 0, None
    for path, index, row in told:
        own = (path, row.get(identity.episode.name, index))
        runs, before = runs + (before != own), own
        episodes.setdefault(own, set()).add(verdict_of(row, identity.success)[0])
        rows.setdefault(own, []).append(row)
    contested = any({True, False} <= verdicts for verdicts in episodes.values())
    if runs > len(episodes) or 2 * len(episodes) > len(told):
        return ""
    counts = any(STEP.search(name) and all(_grows(name, one) for one in rows.values()) for name in told[0][2])
    return CONTESTED if contested else COUNTED if counts else ""


def _grows(name: str, rows: list[dict[str, Any]]) -> bool:
    values: list[Any] = [row.get(name) for row in rows]
    return all(isinstance(one, (int, float)) for one in values) and all(a < b for a, b in zip(values, values[1:]))


def _copied(told: list[Told], shared: set[str], planned: int) -> bool:
    """Whether each row comes again in another file, under whatever index. Files that name processes are no copies."""
    places: dict[frozenset[Any], list[str]] = {}
    for path, _, row in told:
        places.setdefault(frozenset((name, row.get(name)) for name in shared - {COPY}), []).append(path)
    times, rest = divmod(len(told), planned)
    again = all(len({*paths}) > 1 and not len(paths) % times for paths in places.values()) if times > 1 else False
    return again and not rest and not _parallel({path for path, _, _ in told})


def _parallel(paths: Iterable[str]) -> bool:
    return all(any(_PARALLEL.fullmatch(part.partition(".")[0]) for part in path.split("/")) for path in paths)


def _words(name: str) -> set[str]:
    """The words of a name: `scene`, `id` of `scene_id` and of `sceneId`."""
    return {one.lower() for one in _WORD.findall(name)}


def _places(name: str) -> bool:
    """Whether a field names what an episode is of, a task or a process, and surely no step of it."""
    words = _words(name)
    return bool((words & _NAMES) - _WITHIN) and not words & {"step", "frame"}


def _by_text(told: list[Told], name: str) -> dict[str, Any]:
    """Whether the texts in which the indices stand all differ: `task0_trial0`, `task1_trial0`."""
    texts = [row.get(name) for _, _, row in told]
    apart = all(isinstance(one, str) for one in texts) and len({*texts}) == len(texts)
    return _numbered("line", name) if apart else {}


def _by_file(told: list[Told], planned: int, identity: Identity) -> dict[str, Any]:
    """Whether each file numbers its own episodes, as ranks do that share the planned ones. Equal files are copies, if
    their names do not say that several processes wrote them, or if measurements are equal, too. Files of other fields
    tell of the same episodes, unless some say success where others say failure.
    """
    files: dict[str, list[tuple[int, Any]]] = {}
    for path, index, row in told:
        files.setdefault(path, []).append((index, row))
    rows = list(files.values())
    if len(rows) < 2 or len({(path, index) for path, index, _ in told}) < len(told):
        return {}
    if any(set(one[0][1]) != set(rows[0][0][1]) for one in rows):
        return {}
    if _measured(rows[0]) and all(one == rows[0] for one in rows):
        return {}
    equal = any(one == rows[0] for one in rows[1:])
    parallel = _parallel(files)
    fits = len(told) <= planned
    even = len(told) < planned + len(files) and max(map(len, rows)) == min(map(len, rows))
    times = {sum(two == one for two in rows) for one in rows}
    copies = len(times) == 1 and times != {1} and any(map(_COPY_OF.search, files))
    found = (fits or even) if not equal else fits and (parallel or (len(told) == planned and not copies))
    verdicts: dict[int, set[bool | None]] = {}
    for _, index, row in told:
        verdicts.setdefault(index, set()).add(verdict_of(row, identity.success)[0])
    contested = any({True, False} <= one for one in verdicts.values())
    # of a trial, whose program ran more than was asked for, or steps of an episode
    others = (contested or not equal) and not any(map(_COPY_OF.search, files))
    return _numbered("line", FILE) if found or (parallel and not equal) or (others and len(told) > planned) else {}


def _measured(rows: list[tuple[int, Any]]) -> bool:
    """Whether rows hold measurements that chance does not make equal in another file."""
    return len({one for _, row in rows for one in row.values() if isinstance(one, float) and one % 1}) > 1


def _numbered(value: object, by: str) -> dict[str, Any]:
    return {"by": by, "keys": [{"key": "episode", "value": value}]}


def _tells(told: list[Told], name: str) -> bool:
    """Whether the rows with one value of this field have each index once, and there are several such values."""
    values = {row[name] for _, _, row in told}
    return 1 < len(values) <= len(told) // 2 and len({(index, row[name]) for _, index, row in told}) == len(told)


def _product(told: list[Told], names: set[str], planned: int) -> tuple[str, str] | None:
    """Two fields of which each combination is a row, and as many are planned."""
    known = sorted(name for name in names if all(name in row for _, _, row in told) and not STEP.search(name))
    pairs = combinations([name for name in known if not _words(name) & _AGAIN][:_PAIRS_MOST], 2)
    sizes = {name: len({row[name] for _, _, row in told}) for name in known}
    every = (pair for pair in pairs if sizes[pair[0]] * sizes[pair[1]] == len(told) == planned)
    return next((pair for pair in every if _unique(told, pair)), None)


def _unique(told: list[Told], pair: tuple[str, str]) -> bool:
    few = all(1 < len({row[name] for _, _, row in told}) <= len(told) // 2 for name in pair)
    return few and len({(row[pair[0]], row[pair[1]]) for _, _, row in told}) == len(told)


def strides(indices: Sequence[int], span: Span) -> bool:
    """Whether these are the indices of a larger benchmark, each tenth of it perhaps, and as many as planned at most."""
    first, count = span
    steps = {after - before for before, after in zip(indices, indices[1:])}
    return not first and 2 < len(indices) <= count and len(steps) == 1 and min(steps) > 1


def key_of(row: dict[str, Any], field: Field, path: str) -> tuple[object, ...]:
    """What tells an episode from others if the grid names several fields; `file` may be the file itself."""
    found = []
    for name in field.names:
        value = path if name == FILE and name not in row else row.get(name, MISSING)
        if value is MISSING or isinstance(value, (dict, list)):
            raise RefusedError(INDEX, "no_index_field", field=name, has=[str(one) for one in list(row)[:6]])
        found.append(value)
    return tuple(found)
