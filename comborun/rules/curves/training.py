"""What a training left: curves, evaluations and checkpoints, from its log and its output folder. Pure but for reading.

`FORMATS` is the table of the files that hold curves; the log is read as a file of text. What is read is bounded, and
what can't be read is left out: a training is never judged by this.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress

from comborun.rules.curves import checkpoints, event_files, scalar_files
from comborun.rules.curves.log_values import LogValues
from comborun.rules.curves.scalar_files import Episodes, OtherArraysError, ScalarFile
from comborun.rules.curves.series import SHOWN, TRACKS_MOST, best_of, thin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterable, Sequence

    from comborun.rules.curves.series import Curve, Tracks

SCHEMA = 1
TENSORBOARD, MONITOR = "tensorboard", "monitor"
CURVES_MOST = 12
"""curves of a training that are kept, those of a role's surest names first"""
LOG_MOST, FILE_MOST, ALL_MOST = 16 << 20, 8 << 20, 32 << 20
"""bytes that are read: of the log, of one file, of all files together"""
FILES_MOST = 300
_DIGITS = 7
_JUMPING_SHOWN = 5


class Format:
    """A row of the table: which names of files it has, and what reads one into its curves; None: all of a folder
    together."""

    def __init__(self, name: str, words: str, names: str, read: Callable[[ScalarFile], Any] | None) -> None:
        self.name, self.words, self.read = name, words, read
        self.names = re.compile(names, re.IGNORECASE)


def _log(file: ScalarFile) -> LogValues:
    told = LogValues(file.path)
    told.tracks = file.tracks
    with suppress(OSError):
        for data in file.pieces():
            if data is None:
                told.skip()
            else:
                told.feed(data)
    told.finish()
    return told


FORMATS: tuple[Format, ...] = (
    Format(TENSORBOARD, "scalars of TensorBoard", r".*\.tfevents\..*", event_files.events),
    Format("evaluations", "evaluations of Stable-Baselines3", r".*\.npz", scalar_files.arrays),
    Format(MONITOR, "episodes of Monitor", r"(.*\.)?monitor\.csv", None),
    Format("table", "a table over steps", r".*\.(csv|tsv)|progress\.txt", scalar_files.table),
    Format("json-lines", "an object for each step", r".*\.(jsonl|ndjson)", scalar_files.lines_of_json),
    Format("json", "a document of scalars", r".*\.json", scalar_files.document),
    Format("log", "lines of names and numbers", r".*\.(log|txt|out)", _log),
)
"""the first one whose names fit reads a file"""


def read(log: str, directory: str, without: str = "") -> dict[str, Any]:
    """The record of an attempt's curves, a JSON object. `directory`: its output folder. `without`: a name; folders that
    hold a file of this name are left out."""
    listed, files, whole = checkpoints.found(directory, without)
    facts: list[dict[str, Any]] = [] if whole else [{"code": "folder_in_part", "most": checkpoints.ENTRIES_MOST}]
    curves: list[Curve] = []
    told = _read_log(log, facts)
    for tracks in (*_read_files(directory, files, facts), told.tracks):  # of two alike a file is more exact than a log
        curves += tracks.curves()
        facts += [
            {"code": "steps_jump", "name": name, "path": tracks.source} for name in tracks.jumping[:_JUMPING_SHOWN]
        ]
        if tracks.beyond:
            fact = {"code": "curves_beyond", "path": tracks.source, "most": TRACKS_MOST, "metrics": len(tracks.beyond)}
            facts.append(fact)
    chosen = [one for one in best_of(curves) if one.read]
    kept = _kept(chosen)
    shown = listed[-checkpoints.LISTED_MOST :]
    return {
        "schema": SCHEMA,
        "announced": _whole(told.announced),
        "curves": [as_data(one) for one in kept],
        "more_curves": len(chosen) - len(kept),
        "checkpoints": [one.as_data() for one in shown],
        "checkpoints_found": len(listed),
        "checkpoints_size": sum(one.size for one in listed),
        "facts": facts,
    }


def _kept(chosen: Sequence[Curve]) -> list[Curve]:
    """Of each role the surest ones, as many of each as there is room for."""
    groups: dict[tuple[str, str], list[Curve]] = {}
    for one in chosen:
        groups.setdefault((one.of, one.role), []).append(one)
    each = max(1, CURVES_MOST // max(1, len(groups)))
    return [one for group in groups.values() for one in group[:each]]


def _read_log(path: str, facts: list[dict[str, Any]]) -> LogValues:
    try:
        file = ScalarFile(path, "log", LOG_MOST)
    except OSError:
        return LogValues()
    if file.in_part:
        facts.append({"code": "read_in_part", "path": "log", "most": LOG_MOST, "size": file.size})
    return _log(file)


def _read_files(directory: str, files: Sequence[tuple[str, int]], facts: list[dict[str, Any]]) -> Iterable[Tracks]:
    left, read_so_far = ALL_MOST, 0
    shared: dict[str, Tracks] = {}
    others: list[str] = []
    """archives of arrays without evaluations"""
    episodes: dict[str, tuple[ScalarFile, Episodes]] = {}
    for path, size in files:
        format_ = format_of(path)
        if format_ is None or not size:
            continue
        most = min(FILE_MOST, left)
        if read_so_far >= FILES_MOST or most < min(size, 1 << 16):
            facts.append({"code": "files_not_read", "path": path, "most": FILES_MOST})
            break
        read_so_far += 1
        try:
            file = ScalarFile(os.path.join(directory, path), path, most)
            folder = path.rpartition("/")[0]
            # Each start writes another file of events, and each rank may write its own of any kind.
            name = f"{folder}/" if format_.name == TENSORBOARD else file.of_ranks
            file.tracks = shared.setdefault(name, file.tracks)
            whole = _take(format_, file, episodes)
        except (OSError, MemoryError):
            continue
        except OtherArraysError:
            others.append(path)
            continue
        except Exception as error:  # noqa: BLE001 - the other files can be read
            facts.append({"code": "curves_not_read", "path": path, "error": type(error).__name__})
            continue
        left -= min(size, most)
        if whole is False or (file.in_part and format_.name not in (TENSORBOARD, "evaluations", "json")):
            facts.append({"code": "read_in_part", "path": path, "most": most, "size": size})
    if others:
        facts.append({"code": "arrays_not_read", "path": others[0], "files": len(others)})
    for file, told in episodes.values():
        told.put(file)
    return shared.values()


def _take(format_: Format, file: ScalarFile, episodes: dict[str, tuple[ScalarFile, Episodes]]) -> Any:
    """Read a file. Returns False if not to its end, as far as its format tells."""
    if format_.read:
        return format_.read(file)
    return episodes.setdefault(file.path.rpartition("/")[0], (file, Episodes()))[1].take(file)


def format_of(path: str) -> Format | None:
    if path.startswith("ranks/"):  # the log has what the ranks print
        return None
    name = path.rpartition("/")[2]
    return next((one for one in FORMATS if one.names.fullmatch(name)), None)


def as_data(curve: Curve) -> dict[str, Any]:
    steps, values = thin(curve.steps, curve.values, SHOWN)
    data: dict[str, Any] = {key: getattr(curve, key) for key in ("name", "role", "of", "unit", "source", "score")}
    data.update(points=len(curve.steps), read=curve.read)
    data.update({key: getattr(curve, key) for key in ("not_numbers", "superseded") if getattr(curve, key)})
    data.update({"ranks": curve.ranks} if curve.ranks > 1 else {})
    data.update(steps=[_whole(one) for one in steps], values=[float(f"{one:.{_DIGITS}g}") for one in values])
    return data


def _whole(value: float | None) -> Any:
    return int(value) if value is not None and value == int(value) else value
