"""A folder that a training wrote, without a plan: which trainings are in it, and what they left."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from comborun.reporter.records.collector import SCHEMA_FILE
from comborun.rules.curves import checkpoints, record, training
from comborun.rules.curves.metrics import EPISODES, is_evaluation, words_of
from comborun.rules.curves.scalar_files import of_ranks

MOST = 200
"""trainings in one folder"""
_OF_TRAININGS = re.compile(r"(?i)progress\.\w+|(.*\.)?monitor\.csv|.*\.tfevents\..*")
"""names that only trainings give to their files"""
_WORDS = frozenset(("train", "training", "learning", "rollout"))
Record = dict[str, Any]


def trainings_in(directory: Path) -> dict[str, Record]:
    """Each training below a folder: its name, and its record (rules/curves/record.py)."""
    found: dict[str, Record] = {}
    for folder in _folders(directory):
        read = record.parse(json.dumps(training.read("", str(folder), without=SCHEMA_FILE)))
        if _is_training(read):
            name = folder.relative_to(directory).as_posix()
            found[directory.resolve().name if name == "." else name] = read
    return found


def _is_training(found: Record) -> bool:
    """Whether curves are surely of a training: they are over steps, and the name of a file, or checkpoints, say so. A
    table of episodes, or of the steps of one episode, is none. Archives of evaluations name the training's steps, so
    beside them any checkpoint does."""
    over_steps = [one for one in found["curves"] if one["unit"] != EPISODES]
    named = any(_says_training(one["source"], one["name"]) for one in over_steps)
    evaluated = any(one["source"].endswith(".npz") for one in over_steps)
    return bool(over_steps) and (named or any(evaluated or one["step"] is not None for one in found["checkpoints"]))


def _says_training(path: str, name: str) -> bool:
    """`path`: of a file, or of a folder of event files, with a stroke behind it."""
    ours = path.endswith("/") or _OF_TRAININGS.fullmatch(PurePosixPath(path).name)
    return bool(ours or _WORDS & {*words_of(path), *words_of(name)})


def curves_in(directory: Path) -> str:
    """A file with curves over steps that is not surely of a training; empty without one."""
    read = record.parse(json.dumps(training.read("", str(directory), without=SCHEMA_FILE)))
    sources = (one["source"] for one in read["curves"] if one["unit"] != EPISODES)
    return next((path for path in sources if path and not path.endswith("/")), "")


def _folders(directory: Path) -> Iterator[Path]:
    """The folders of single trainings. Files of equal names in several folders are of several trainings, but for those
    of ranks and of evaluations."""
    every = checkpoints.found(str(directory), SCHEMA_FILE)[1]
    files = [path for path, size in every if size and training.format_of(path) is not None]
    yield from list(_split(directory, [PurePosixPath(of_ranks(path)) for path in files]))[:MOST]


def _split(directory: Path, files: list[PurePosixPath]) -> Iterator[Path]:
    below: defaultdict[str, list[PurePosixPath]] = defaultdict(list)
    for path in files:
        if len(path.parts) > 1 and not is_evaluation(path.parts[0]):
            below[path.parts[0]].append(PurePosixPath(*path.parts[1:]))
    alone = len(below) == 1 and all(len(path.parts) > 1 for path in files)
    kinds = [{_kind(path) for path in paths} for paths in below.values()]
    several = any(one & other for at, one in enumerate(kinds) for other in kinds[:at])
    if not (alone or several):
        yield directory
        return
    for name, paths in sorted(below.items()):
        if (directory / name).is_dir():
            yield from _split(directory / name, paths)
        else:  # a folder of one rank: the name is that of all
            yield directory


def _kind(path: PurePosixPath) -> str:
    """The name of a file with neither the numbers nor the host in it, which event files have in theirs."""
    name = "tfevents" if ".tfevents." in path.name else re.sub(r"[0-9]+", "0", path.name)
    return (path.parent / name).as_posix()
