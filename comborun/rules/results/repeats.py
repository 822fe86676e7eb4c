"""Why several rows have one index: they repeat an episode, or each task, scene or file numbers its own. Pure."""

from __future__ import annotations

from itertools import combinations

from comborun.rules.results.fields import INDEX, MISSING, TEXT_MOST, RefusedError

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
FILE = "file"


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
    numbers them; empty if they are repetitions.
    """
    told = [(path, index, row) for path, kept in files for index, row in kept]
    distinct, planned = len({index for _, index, _ in told}), span[1] or len(told)
    if distinct == len(told):
        return {}
    if distinct >= planned or len(told) > planned:
        return _by_file(told, planned)
    own = (identity.success, identity.policy_field, identity.environment_field, identity.seed)
    held = ({name for name, one in row.items() if not isinstance(one, float)} for _, _, row in told)
    shared = set.intersection(*held).difference(field.name for field in own)
    names = sorted(shared - {identity.episode.name}, key=lambda name: (len({row[name] for _, _, row in told}), name))
    by = next((name for name in names if _tells(told, name)), "")
    if by and identity.episode.name in shared:
        return _numbered([by, identity.episode.name], by)
    pair = next((pair for pair in combinations(names[:_PAIRS_MOST], 2) if _unique(told, pair)), None)
    if by or pair:
        return _numbered(list(pair) if pair else "line", by or " and ".join(pair or ()))
    return _by_file(told, planned)


def _by_file(told: list[Told], planned: int) -> dict[str, Any]:
    """Whether each file numbers its own episodes, as ranks do that share the planned ones. Equal files are copies, and
    files of other fields tell of the same episodes.
    """
    files: dict[str, list[tuple[int, Any]]] = {}
    for path, index, row in told:
        files.setdefault(path, []).append((index, row))
    apart = len({(path, index) for path, index, _ in told}) == len(told)
    first = next(iter(files.values()), [])
    copies = any(rows == first or set(rows[0][1]) != set(first[0][1]) for rows in list(files.values())[1:])
    even = len(told) < planned + len(files) and max(map(len, files.values())) == min(map(len, files.values()))
    return _numbered("line", FILE) if apart and not copies and (even or len(told) <= planned) else {}


def _numbered(value: object, by: str) -> dict[str, Any]:
    return {"by": by, "keys": [{"key": "episode", "value": value}]}


def _tells(told: list[Told], name: str) -> bool:
    """Whether the rows with one value of this field have each index once, and there are several such values."""
    values = {row[name] for _, _, row in told}
    return 1 < len(values) <= len(told) // 2 and len({(index, row[name]) for _, index, row in told}) == len(told)


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
