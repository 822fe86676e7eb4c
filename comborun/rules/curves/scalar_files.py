"""Curves in files of scalars: tables with a header, Monitor's episodes, lines and documents of JSON, evaluations.npz.
Pure but for reading.

A file counts if it names its steps: a column, a key, or a list beside the values. Rows that are torn or hold something
else are passed over.
"""

from __future__ import annotations

import csv
import os
import re

from comborun.rules.curves.metrics import (
    EPISODES,
    EPOCHS,
    EVALUATION,
    STEPS,
    Metric,
    is_evaluation,
    metric,
    step,
    step_unit,
    value,
)
from comborun.rules.curves.series import Tracks
from comborun.rules.facts import json_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, Iterator

    Steps = Dict[str, float]

LINE_MOST = 1 << 20
"""bytes of a line"""
DOCUMENT_MOST = 32 << 20
"""bytes of a JSON document, which is read whole"""
ARRAYS_MOST = 4 << 20
"""bytes of an archive of arrays, and of what is in it"""
COLUMNS_MOST = 4000
_DEPTH, _KEYS_MOST = 5, 4000
_NAME_KEYS, _VALUE_KEYS = ("tag", "name", "metric", "key"), ("value", "values", "val", "y")


_RANK = re.compile(r"(?i)[-_.]?(?<![a-z])rank[-_]?(?P<rank>[0-9]{1,5})")


class ScalarFile:
    """A file that is read into curves, at most so many bytes of it: of a longer one the beginning and the end."""

    def __init__(self, place: str, path: str, most: int) -> None:
        self.place, self.path = place, path
        """`path`: below the output folder"""
        self.most = most
        self.size = os.path.getsize(place)
        self.in_part = self.size > most
        self.tracks = Tracks(path)
        self.evaluates = is_evaluation(path)
        found = _RANK.search(path)
        self.rank = int(found.group("rank")) if found else 0
        self.of_ranks = of_ranks(path)
        """the path that the files of all ranks share"""

    def pieces(self) -> Iterator[bytes | None]:
        """The bytes; None stands for what is left out."""
        with open(self.place, "rb") as stream:
            left = self.most // 2 if self.in_part else self.size
            for begin in (0, self.size - left) if self.in_part else (0,):
                if begin:
                    yield None
                stream.seek(begin)
                for at in range(0, left, 1 << 18):
                    yield stream.read(min(left - at, 1 << 18))

    def lines(self, *, torn: bool = False) -> Iterator[str]:
        """Whole lines. Those beside a gap are left out, and so are very long ones. `torn`: with the last one if it has
        no end, so that a number in it may be cut off."""
        rest, whole = b"", True
        for data in self.pieces():
            if data is None:
                rest, whole = b"", False
                continue
            found = (rest + data).replace(b"\r\n", b"\n").replace(b"\0", b"").split(b"\n")
            rest = found.pop()
            for line in found if whole else found[1:]:
                if line and len(line) <= LINE_MOST:
                    yield line.decode("utf-8", "replace")
            whole = whole or bool(found)
            if len(rest) > LINE_MOST:
                rest, whole = b"", False
        if torn and rest and whole:
            yield rest.decode("utf-8", "replace")

    def add(self, name: str, steps: Steps, found: object) -> None:
        what, told = self.metric(name), value(found)
        if what and steps and told is not None:
            self.tracks.add(what, steps, told, self.rank)

    def metric(self, name: str) -> Metric | None:
        what = metric(name)
        if what and self.evaluates and what.of != EVALUATION:
            return metric(f"eval/{name}") or what
        return what


def of_ranks(path: str) -> str:
    return _RANK.sub("", path)


def steps_of(named: Iterable[tuple[str, Any]]) -> Steps:
    """The step of a row in each unit, from its fields."""
    found: dict[str, tuple[int, float]] = {}
    for name, told in named:
        unit = step_unit(name)
        place = step(value(told, whole=unit[0] != EPOCHS)) if unit and not isinstance(told, bool) else None
        if unit and place is not None and (unit[0] not in found or unit[1] < found[unit[0]][0]):
            found[unit[0]] = unit[1], place
    return {unit: place for unit, (_, place) in found.items()}


# Tables


def table(file: ScalarFile) -> None:
    """`progress.csv`, `metrics.csv`, `progress.txt`: a header, then a row for each step, perhaps with empty cells."""
    lines = iter(file.lines())
    names: list[str] = []
    between = ","
    for line in lines:
        if line.startswith("#") or not line.strip():
            continue
        if not names:
            between = max(("\t", ";", ","), key=line.count)
            names = [_named_by_file(file, name) for name in _cells(line.lstrip("\ufeff"), between)]
            if not _is_table(file, names):
                return
            continue
        cells = _cells(line, between)
        if cells == names or len(cells) > len(names):
            continue
        if any(cell and step_unit(cell) for cell in cells) and _is_table(file, cells):  # a resumed program's header
            names = cells
            continue
        row = [(name, cell) for name, cell in zip(names, cells) if cell]
        steps = steps_of(row)
        for name, cell in row if steps else ():
            file.add(name, steps, cell)


def _named_by_file(file: ScalarFile, name: str) -> str:
    """TensorBoard's page gives a table of steps and values, whose metric is in the name of the file."""
    stem = file.path.rpartition("/")[2].rpartition(".")[0]
    return stem.rpartition("tag-")[2] if name.lower() == "value" else name


def _cells(line: str, between: str) -> list[str]:
    try:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=between), [])][:COLUMNS_MOST]
    except csv.Error:
        return []


def _is_table(file: ScalarFile, names: list[str]) -> bool:
    return any(step_unit(name) for name in names) and any(file.metric(name) for name in names)


class Episodes:
    """The episodes of Monitor's files of one folder, a file for each environment: in the order in which they ended."""

    def __init__(self) -> None:
        self._rows: list[tuple[float, tuple[float, ...]]] = []

    def take(self, file: ScalarFile) -> None:
        """`r`, `l` and `t` of each episode; in the first line when the program began."""
        columns: dict[str, int] = {}
        width, began = 0, 0.0
        for line in file.lines():
            if line.startswith("#"):
                began = _began(line)
                continue
            cells = _cells(line, ",")
            if "r" in cells and "l" in cells:
                columns, width = {name: at for at, name in enumerate(cells)}, len(cells)
                continue
            if not columns or len(cells) < width or len(self._rows) >= EPISODES_MOST:
                continue
            told = [value(cells[columns[name]]) if name in columns else None for name in _OF_EPISODE]
            length, ended = told[1], told[2]
            if told[0] is not None and length is not None and 0 <= length < 1e12:
                row = tuple(float("nan") if one is None else one for one in told)
                self._rows.append((began + (ended if ended is not None and abs(ended) < 1e12 else 0.0), row))

    def put(self, file: ScalarFile) -> None:
        """The steps are the lengths so far, of all environments."""
        steps = episodes = 0.0
        for _, (reward, length, _, success, solved) in sorted(self._rows, key=lambda one: one[0]):
            steps, episodes = steps + length, episodes + 1
            at = {STEPS: steps, EPISODES: episodes}
            file.add("monitor/episode_return", at, reward)
            file.add("monitor/episode_length", at, length)
            ended_well = solved if success != success else success
            if ended_well == ended_well:
                file.add("monitor/success", at, ended_well)


_OF_EPISODE = ("r", "l", "t", "is_success", "success")
EPISODES_MOST = 500_000


def _began(line: str) -> float:
    found = json_of(line.lstrip("# "))
    began = found.get("t_start") if isinstance(found, dict) else None
    return began if isinstance(began, float) and abs(began) < 1e12 else 0.0


# JSON


def lines_of_json(file: ScalarFile) -> None:
    """An object for each step, or for each value with its name."""
    for line in file.lines(torn=True):
        if line.lstrip().startswith("{"):
            _object(file, json_of(line))


def document(file: ScalarFile) -> None:
    """A document: lists of objects with steps, or lists of values beside a list of steps; else lines."""
    if file.size > DOCUMENT_MOST:
        return lines_of_json(file)
    with open(file.place, "rb") as stream:
        data = stream.read(DOCUMENT_MOST)
    tree = json_of(data.decode("utf-8-sig", "replace"))
    return lines_of_json(file) if tree is None else _tree(file, tree, "", 0)


def _tree(file: ScalarFile, tree: Any, name: str, depth: int) -> None:
    if depth > _DEPTH:
        return
    if isinstance(tree, list):
        if tree and all(isinstance(one, (list, tuple)) and len(one) in (2, 3) for one in tree[:3]):
            _pairs(file, tree, name)
        for one in tree if tree and isinstance(tree[0], dict) else ():
            if isinstance(one, dict):
                _object(file, one)
    elif isinstance(tree, dict):
        if _columns(file, tree, name):
            return
        for key, one in list(tree.items())[:_KEYS_MOST]:
            if isinstance(one, (list, dict)):
                _tree(file, one, f"{name}/{key}" if name else str(key), depth + 1)


def _pairs(file: ScalarFile, rows: list[Any], name: str) -> None:
    """`[[step, value], ...]`, or `[[time, step, value], ...]` as TensorBoard gives them."""
    what = name or file.path.rpartition("/")[2].rpartition(".")[0]
    for row in rows:
        if isinstance(row, list) and len(row) in (2, 3):
            place = step(row[-2])
            if place is not None:
                file.add(what, {STEPS: place}, row[-1])


def _columns(file: ScalarFile, tree: dict[str, Any], name: str) -> bool:
    """Lists of equal length side by side, one of them of steps: `{"step": [...], "reward": [...]}`."""
    lists = {
        str(key): one
        for key, one in tree.items()
        if isinstance(one, list) and one and not isinstance(one[0], (dict, list))
    }
    units = {key: step_unit(key) for key in lists}
    known = [key for key, unit in units.items() if unit]
    if not known:
        return False
    size = len(lists[known[0]])
    for key, values in lists.items():
        if key in known or len(values) != size:
            continue
        own = name if key.lower() in _VALUE_KEYS and name else f"{name}/{key}" if name else key
        for at, told in enumerate(values):
            steps = steps_of((one, lists[one][at]) for one in known if at < len(lists[one]))
            file.add(own, steps, told)
    return True


def _object(file: ScalarFile, row: Any) -> None:
    if not isinstance(row, dict):
        return
    flat = dict(_flat(row, "", 0))
    steps = steps_of(flat.items())
    if not steps:
        return
    label = next((row[key] for key in _NAME_KEYS if isinstance(row.get(key), str)), None)
    held = next((row[key] for key in _VALUE_KEYS if key in row), None)
    if label is not None and held is not None:
        file.add(label, steps, held)
        return
    for name, told in flat.items():
        file.add(name, steps, told)


def _flat(row: dict[str, Any], name: str, depth: int) -> Iterator[tuple[str, Any]]:
    for key, told in list(row.items())[:_KEYS_MOST]:
        own = f"{name}/{key}" if name else str(key)
        if isinstance(told, dict):
            if depth < _DEPTH:
                yield from _flat(told, own, depth + 1)
        elif isinstance(told, (bool, int, float, str)):
            yield own, told


# numpy


class OtherArraysError(Exception):
    """An archive of arrays that holds no curves over steps as far as is known."""


def arrays(file: ScalarFile) -> None:
    """`evaluations.npz`: timesteps, and for each of them the results, lengths and perhaps successes of episodes. Raises
    OtherArraysError for other archives."""
    from comborun.rules.results.documents import held_arrays, opened
    from comborun.rules.results.fields import RefusedError

    if file.size > ARRAYS_MOST:
        raise OtherArraysError
    with open(file.place, "rb") as stream:
        data = stream.read(ARRAYS_MOST)
    try:
        with opened(data) as archive:
            if sum(one.file_size for one in archive.infolist()) > ARRAYS_MOST:
                raise OtherArraysError
        held = held_arrays(data)
    except RefusedError:
        raise OtherArraysError from None
    shape, steps = held.get("timesteps", ((), []))
    if len(shape) != 1 or "results" not in held:
        raise OtherArraysError
    named = {"results": "eval/episode_return", "ep_lengths": "eval/episode_length", "successes": "eval/success"}
    for name, own in named.items():
        size, values = held.get(name, ((), []))
        if not size or size[0] != len(steps) or len(size) > 2:
            continue
        each = size[1] if len(size) == 2 else 1
        for at, place in enumerate(steps):
            known, told = step(value(place)), values[at * each : (at + 1) * each]
            if known is not None and told:
                file.add(own, {STEPS: known}, sum(told) / len(told))
