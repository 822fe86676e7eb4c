"""Rows in whole documents: JSON with episodes at any depth, logs of Inspect, archives of numpy arrays, SQLite files."""

from __future__ import annotations

import re
from contextlib import contextmanager

from comborun.rules.facts import Fact
from comborun.rules.results.candidates import episodes, rank
from comborun.rules.results.episodes import decode, decode_whole
from comborun.rules.results.field_names import SUCCESS_LISTS
from comborun.rules.results.fields import FORMAT, NO_RECORD, TEXT_MOST, TORN, UNREADABLE, Identity, RefusedError
from comborun.rules.results.flat_lists import as_rows
from comborun.rules.results.one_row import verdict_of
from comborun.rules.results.readers import stating
from comborun.rules.results.stated_counts import aggregate, counted, counting_on, stated
from comborun.rules.results.unfinished import refuse_unfinished

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator, Mapping, Tuple

    from comborun.rules.results.readers import Entry, Whole

    Row = dict[str, Any]
    Array = Tuple[Tuple[int, ...], list[Any]]

SUMMARY_NOT_READ = "summary_not_read"
"""code of the fact that a file sums up others"""
_TEXT_MOST = 200
_MEMBER_MOST = 256 << 20
_MEMBERS_MOST = 100_000
_GRADES = {"C": True, "I": False}


def read(file: Whole) -> Iterator[Entry]:
    """The episodes of any document, else how many of them succeeded. Raises RefusedError."""
    values, fault = decode(file.text)
    several = len(values) > 1 and not fault  # lines in a file with the name of a document
    value = values if several else as_rows(decode_whole(file.text))
    if isinstance(value, list) and (last := counting_on(value, file.identity)):
        return stating(last)
    try:
        rows = episodes(value, file.identity, file.path)
    except RefusedError:
        found = aggregate(value, file.path.rpartition("/")[2])
        if not found:
            raise
        refuse_unfinished(value, file.identity, 0, found)
        return stating(found)
    refuse_unfinished(value, file.identity, len(rows))
    if all(at is not None for _, at in rows):
        _contradict(value, [row for row, _ in rows], file)
    return iter([(0, row, None, at) for row, at in rows])


def _contradict(value: Any, rows: list[Row], file: Whole) -> None:
    """Raise RefusedError for a list of failures alone, or of successes, beside the count of all episodes."""
    verdicts = {verdict_of(row, file.identity.success)[0] for row in rows if isinstance(row, dict)}
    if not isinstance(value, dict) or verdicts not in ({True}, {False}):
        return
    told = (value, *(one for one in value.values() if isinstance(one, dict)))
    successes = len(rows) if True in verdicts else 0
    for whole in filter(None, map(stated, told)):
        if whole.episodes > len(rows) and whole.successes not in (successes, whole.episodes if successes else 0):
            parts = [f"the whole: {whole.successes} of {whole.episodes}", f"a list: {successes} of {len(rows)}"]
            raise RefusedError(FORMAT, "counts_contradict", found=parts)


def rollouts(file: Whole) -> Iterator[Entry]:
    """The statistics of Robomimic and RoboCasa: a rate and a number of episodes. Raises RefusedError."""
    found = counted(decode_whole(file.text))
    yield from stating(found)


def summary(file: Whole) -> Iterator[Entry]:
    """What a program sums up: it may include older results, so it counts only if it is of as many episodes as planned.
    Raises RefusedError."""
    value = decode_whole(file.text)
    found = aggregate(value)
    if found:
        refuse_unfinished(value, file.identity, 0, found)
    if not found or found.episodes != file.identity.planned:
        raise RefusedError(FORMAT, SUMMARY_NOT_READ)
    yield from stating(found)


def inspect(file: Whole) -> Iterator[Entry]:
    """The samples of an Inspect log, `.json` or the zip archive `.eval`. Raises RefusedError."""
    data, identity = file.data, file.identity
    value: Any = {"samples": _archived(data)} if data[:2] == b"PK" else decode_whole(data.decode("utf-8", "replace"))
    samples = value.get("samples") if isinstance(value, dict) else None
    if not isinstance(samples, list):
        raise RefusedError(FORMAT, "inspect_without_samples")
    for at, sample in enumerate(samples):
        yield 0, _sample(sample, identity) if isinstance(sample, dict) else sample, None, at


def _sample(sample: Row, identity: Identity) -> Row:
    """The first scorer's grade is the verdict; each scorer's value is a field of its own."""
    scores = sample.get("scores")
    scores = scores if isinstance(scores, dict) else {}
    values = {name: one.get("value") for name, one in scores.items() if isinstance(one, dict)}
    row: Row = {"sample": str(sample.get("id")), "epoch": str(sample.get("epoch", 1)), **values}
    if sample.get("error"):
        row["error"] = str(sample["error"])[:_TEXT_MOST]
    grade = next(iter(values.values()), None)
    if identity.success.name not in row and not identity.success.tests:
        row[identity.success.name] = None if sample.get("error") else _GRADES.get(str(grade), grade)
    return row


def _archived(data: bytes) -> Any:
    """The samples of an archive: from its summaries, or one by one if the evaluation was not finished."""
    with opened(data) as archive:
        names = archive.namelist()[:_MEMBERS_MOST]
        if "summaries.json" in names:
            return _decoded(archive, "summaries.json")
        wanted = sorted(name for name in names if name.startswith("samples/") and name.endswith(".json"))
        return [_decoded(archive, name) for name in wanted]


def _decoded(archive: Any, name: str) -> Any:
    return decode_whole(member(archive, name).decode("utf-8", "replace"))


@contextmanager
def opened(data: bytes) -> Iterator[Any]:
    """A zip archive. Raises RefusedError for one that can't be read."""
    import io
    import zipfile

    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            yield archive
    except (zipfile.BadZipFile, EOFError) as error:
        raise RefusedError(TORN, "half_written_archive") from error
    except NotImplementedError as error:
        raise RefusedError(UNREADABLE, "archive_compression") from error
    except (RefusedError, MemoryError):
        raise
    except Exception as error:  # of each way to pack a member
        raise RefusedError(UNREADABLE, "unreadable_archive", error=type(error).__name__) from error


def member(archive: Any, name: str) -> bytes:
    """The content of one file of an archive. It never exceeds the limit, even if the archive's directory says less."""
    with archive.open(name) as stream:
        data: bytes = stream.read(_MEMBER_MOST + 1)
    if len(data) > _MEMBER_MOST:
        raise RefusedError(UNREADABLE, "member_too_large", member=name, most_mib=_MEMBER_MOST >> 20)
    return data


# Archives `.npz` of numpy arrays, such as evaluations.npz of Stable-Baselines3. Nothing is unpickled

_ARRAY_NAMES = {
    "successes": "success",
    "results": "return",
    "returns": "return",
    "rewards": "return",
    "ep_lengths": "length",
}
"""what one value of an array is called"""
_PROCESS = re.compile(r"(?i)[._-]?(?:rank|worker|gpu|proc(?:ess)?|shard|env|seed|part)?[._-]?\d{1,6}")
"""what a process puts into the name of its array"""
_CODES = {"b1": "?", "i1": "b", "u1": "B", "i2": "h", "u2": "H", "i4": "i", "u4": "I", "i8": "q", "u8": "Q"}
_CODES.update({"f2": "e", "f4": "f", "f8": "d"})
_OF_TRAINING = re.compile("step|time|iter|epoch|update")
_OF_RUNS = re.compile("(?:[a-z]+_)?(?:seed|run)s?")
"""names of arrays that say what the rows of another are"""
RUN_OF_ROW = "train_seed"
"""the field of the run that a row is of"""
_MAGIC = b"\x93NUMPY"
_ARRAYS_MOST = 100
_HEADER_MOST = 1 << 16


def arrays(file: Whole) -> Iterator[Entry]:
    """An episode for each value of the arrays; of several evaluations in one file those of the last, of several runs
    all. Raises RefusedError."""
    own = file.identity.success.name
    name = file.path.rpartition("/")[2].partition(".")[0]
    held = held_arrays(file.data, name)
    if own not in held:
        if len(held) == 1:
            held = {_PROCESS.sub("", name): one for name, one in held.items()}
        held = {own if name in SUCCESS_LISTS and name != "successes" else name: one for name, one in held.items()}
    known = [name for name in held if name in _ARRAY_NAMES or name == own]
    if not known:
        raise RefusedError(FORMAT, "no_array_of_outcomes", arrays=sorted(held)[:5])
    shape = held[known[0]][0]
    if 0 in shape:
        raise RefusedError(NO_RECORD, "results_of_no_episodes")
    columns: dict[str, list[Any]] = {}
    for name, (size, values) in held.items():
        if size == shape:
            columns[_ARRAY_NAMES.get(name, name)] = values
    evaluations, episodes = (1, *shape)[-2:] if shape else (1, 0)
    runs = _runs_of_rows(held, evaluations, episodes, file.identity.planned) if evaluations > 1 else [None]
    remark = Fact("last_evaluation_counts", evaluations=evaluations) if evaluations > len(runs) else None
    apart = len(runs) > 1 and file.identity.planned != shape[0] * episodes  # else all are numbered on
    skipped = (evaluations - len(runs)) * episodes
    for at in range(len(runs) * episodes):
        row = {name: column[skipped + at] for name, column in columns.items()}
        row.update({RUN_OF_ROW: runs[at // episodes]} if apart else {})
        yield 0, row, None if at else remark, at % episodes if apart else at


def _runs_of_rows(held: Mapping[str, Array], rows: int, episodes: int, planned: int) -> list[Any]:
    """What tells the rows of a table of outcomes apart that count: seeds, or numbers; one if only the last counts, as
    of evaluations during a training. Raises RefusedError where nothing says which of both they are."""
    beside = {name.lower(): values for name, (size, values) in held.items() if size == (rows,)}
    if any(map(_OF_TRAINING.search, beside)):
        return [None]
    runs = next((values for name, values in beside.items() if _OF_RUNS.fullmatch(name)), [])
    if runs or planned == rows * episodes:
        return runs or [*range(rows)]
    raise RefusedError(NO_RECORD, "rows_of_outcomes", rows=rows, episodes=episodes, all=rows * episodes)


def held_arrays(data: bytes, name: str = "") -> dict[str, Array]:
    """The arrays of an archive, or the one of a `.npy` under this name. Raises RefusedError."""
    if data.startswith(_MAGIC):
        return {name: _array(data, name)}
    with opened(data) as archive:
        names = [name for name in archive.namelist()[:_ARRAYS_MOST] if name.endswith(".npy")]
        return {name[: -len(".npy")]: _array(member(archive, name), name) for name in names}


def _array(data: bytes, name: str) -> Array:
    """Shape and values, in the order of C. Raises RefusedError."""
    import ast
    import struct

    if not data.startswith(_MAGIC) or len(data) < 12:
        raise RefusedError(UNREADABLE, "member_no_array", member=name)
    wide = data[6] > 1
    (length,) = struct.unpack_from("<I" if wide else "<H", data, 8)
    start = (12 if wide else 10) + length
    try:
        header = ast.literal_eval(data[start - length : start].decode("latin-1")) if length <= _HEADER_MOST else {}
        kind, shape, transposed = str(header["descr"]), tuple(header["shape"]), header["fortran_order"]
    except (ValueError, SyntaxError, KeyError, TypeError, MemoryError, RecursionError) as error:
        raise RefusedError(UNREADABLE, "member_without_header", member=name) from error
    if "O" in kind:
        raise RefusedError(UNREADABLE, "member_of_objects", member=name)
    code = _CODES.get(kind[1:])
    if code is None or len(shape) > 2 or (transposed and len(shape) > 1):
        return (), []
    count = 1
    for size in shape:
        count *= size if isinstance(size, int) and size >= 0 else 0
    if count * struct.calcsize(code) > len(data) - start:
        raise RefusedError(TORN, "member_cut_off", member=name)
    return shape, list(struct.unpack_from(f"{'>' if kind[0] == '>' else '<'}{count}{code}", data, start))


# SQLite files, read only: no journal, lock or temporary file is ever written beside them

ROWS_MOST = 1_000_000
_TABLES = """SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0
    AND name NOT LIKE 'sqlite~_%' ESCAPE '~' ORDER BY name LIMIT ?"""
"""no views and no virtual tables: these compute"""
_TABLES_MOST = 1000
_CELL_MOST = 1 << 20
"""bytes"""
_STEPS, _STEPS_MOST = 100_000, 20_000
"""of SQLite's machine between two looks, and looks at most: a file can't keep its reader busy for ever"""


def database(file: Whole) -> Iterator[Entry]:
    """The rows of the file at its place, since SQLite opens its files itself. Raises RefusedError."""
    return iter([(0, row, None, at) for at, row in enumerate(_rows(file.place, file.identity))])


def _rows(place: str, identity: Identity) -> list[dict[str, Any]]:
    """Of the table that is most surely one of episodes. Raises RefusedError."""
    if not place:
        raise RefusedError(UNREADABLE, "database_not_in_a_folder")
    try:
        import sqlite3
        from urllib.parse import quote
    except ImportError as error:
        raise RefusedError(UNREADABLE, "no_sqlite3") from error
    try:
        base = sqlite3.connect(f"file:{quote(place)}?mode=ro&immutable=1", uri=True)
        try:
            return _best(base, identity)
        finally:
            base.close()
    except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError) as error:
        if str(error) == "interrupted":
            raise RefusedError(UNREADABLE, "database_too_slow") from error
        raise RefusedError(TORN, "half_written_database", error=str(error)[:TEXT_MOST]) from error


def _best(base: Any, identity: Identity) -> list[dict[str, Any]]:
    looks = iter(range(_STEPS_MOST))
    base.set_progress_handler(lambda: next(looks, None) is None, _STEPS)
    base.text_factory = lambda data: data[:_CELL_MOST].decode("utf-8", "replace")
    names = [name for (name,) in base.execute(_TABLES, (_TABLES_MOST,)) if isinstance(name, str)]
    firsts = ((name, _select(base, name, 1)) for name in names)
    ranked = ((rank(rows, identity, name, 1), name) for name, rows in firsts if rows)
    best = min(((how, name) for how, name in ranked if how is not None), default=None)
    if best is None:
        raise RefusedError(FORMAT, "no_table_of_episodes", tables=[one[:TEXT_MOST] for one in names[:5]])
    rows = _select(base, best[1], ROWS_MOST + 1)
    if len(rows) > ROWS_MOST:
        raise RefusedError(UNREADABLE, "table_too_long", table=best[1][:TEXT_MOST], most=ROWS_MOST)
    return rows


def _select(base: Any, table: str, most: int) -> list[dict[str, Any]]:
    quoted = table.replace('"', '""')
    cursor = base.execute(f'SELECT * FROM "{quoted}" LIMIT ?', (most,))  # noqa: S608  # a name can't be a parameter
    names = [column[0] for column in cursor.description]
    return [{name: cell for name, cell in zip(names, row) if not isinstance(cell, bytes)} for row in cursor]
