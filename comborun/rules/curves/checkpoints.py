"""The checkpoints that a training left: names, steps and sizes. No file is opened. Pure but for looking."""

from __future__ import annotations

import os
import re
import stat

from comborun.rules.curves.metrics import EPISODES, EPOCHS, ITERATIONS, STEPS, number, words_of
from comborun.rules.vocabulary import word_set

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SUFFIXES = (".pt", ".pth", ".ckpt", ".zip", ".safetensors", ".distcp", ".msgpack", ".tar")
_ONLY_IF_NAMED = (".zip", ".msgpack", ".tar")
"""suffixes of much else: the name must say that it is a model"""
_MODEL = word_set(
    "model models best last final latest checkpoint checkpoints ckpt policy agent actor rl weights step steps"
)
_FOLDERS = word_set("checkpoint checkpoints ckpt ckpts models weights nn")
_SHARDED = re.compile(
    r"(?i)(?:.*[-_.=])?(?:checkpoint|ckpt|global_?step|steps?|iter(?:ation)?|epoch|update)[-_=]?[0-9][0-9_,]*(?:[kmb]|steps?)?|[0-9]+"
)
"""a folder that is one checkpoint; one that is only a number must lie in one of _FOLDERS"""
_NUMBERED = r"(?P<number>[0-9]+(?:\.[0-9]+)?)(?P<size>[kKmM](?![A-Za-z]))?"
_UNITS = (
    (STEPS, re.compile(rf"(?i)(?:global_?|env_?|time)?(?:steps?|timesteps?|frames?)[-_= ]?{_NUMBERED}(?![0-9])")),
    (STEPS, re.compile(rf"(?i)(?<![0-9.]){_NUMBERED}[-_ ]?(?:steps?|timesteps?|frames?)(?![a-z])")),
    (ITERATIONS, re.compile(rf"(?i)(?:iterations?|iters?|itr|updates?|it)[-_= ]?{_NUMBERED}(?![0-9])")),
    (EPOCHS, re.compile(rf"(?i)(?<![a-z])(?:epochs?|ep)[-_= ]?{_NUMBERED}(?![0-9])")),
    (EPISODES, re.compile(rf"(?i)(?<![a-z])episodes?[-_= ]?{_NUMBERED}(?![0-9])")),
)
_PLAIN = re.compile(r"(?<![0-9.\w])[0-9]+(?![0-9.\w])|(?<=[-_=])[0-9]+(?![0-9.]|\w)")
_NO_STEP = re.compile(
    r"(?i)[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{8}[-_T]?[0-9]{4,6}|[0-9]+[-_]of[-_][0-9]+"
    r"|(?:seed|rank|fold|run|version|v|lr|gpu|of|rew|reward|loss|return|score|acc|success)[-_=]?-?[0-9.]+"
)
"""dates, seeds, shards and values"""
LISTED_MOST = 100
ENTRIES_MOST = 20_000
"""names below an output folder that are looked at"""


class Checkpoint:
    def __init__(self, path: str, size: int) -> None:
        self.path, self.size = path, size
        self.step, self.unit = step_in(path)
        """the step in its name or its folder's; None without one. The unit is empty where the name doesn't say it"""

    def as_data(self) -> dict[str, Any]:
        return {"path": self.path, "step": self.step, "unit": self.unit, "size": self.size}


def step_in(path: str) -> tuple[int | None, str]:
    """The step that a name says, and its unit."""
    parts = path.split("/")
    for place, part in enumerate((parts[-1], *parts[-2:-1])):
        stem = part
        for suffix in SUFFIXES:
            stem = stem[: -len(suffix)] if stem.lower().endswith(suffix) else stem
        for unit, pattern in _UNITS:
            found = pattern.search(_NO_STEP.sub("", stem))
            told = number(found.group("number"), found.group("size") or "", whole=True) if found else None
            if told is not None and told < 1e15:
                return int(told), unit
        plain = [] if place else _PLAIN.findall(_NO_STEP.sub("", stem))
        if plain and len(plain[-1]) < 15:
            return int(plain[-1]), ""
    return None, ""


def found(directory: str, without: str = "") -> tuple[list[Checkpoint], list[tuple[str, int]], bool]:
    """The checkpoints below a folder, by step; its other files, each with its size; and whether all names were looked
    at. Links are not followed. `without`: a name; folders with it are left out."""
    checkpoints: list[Checkpoint] = []
    files: list[tuple[str, int]] = []
    sharded: dict[str, int] = {}
    whole: str | None = None
    looked = 0
    for folder, folders, names in os.walk(directory):
        below = os.path.relpath(folder, directory)
        below = "" if below == "." else f"{below}/"
        if without and without in names:
            folders[:] = []
            continue
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        if whole is not None and not below.startswith(whole):  # what is below a folder comes right after it
            whole = None
        if whole is None and below and _is_sharded(below.rstrip("/"), names):
            whole = below
            sharded[below] = 0
        for name in sorted(names):
            looked += 1
            if looked > ENTRIES_MOST:
                folders[:] = []
                break
            size = _size(os.path.join(folder, name))
            if size is None or name.startswith("."):
                continue
            if whole is not None:
                sharded[whole] += size
            elif _is_checkpoint(name, below):
                checkpoints.append(Checkpoint(f"{below}{name}", size))
            else:
                files.append((f"{below}{name}", size))
    checkpoints += [Checkpoint(path.rstrip("/"), size) for path, size in sharded.items() if size]
    ordered = sorted(checkpoints, key=lambda one: (one.step is None, one.step or 0, one.path))
    return ordered, files, looked <= ENTRIES_MOST


def _size(place: str) -> int | None:
    try:
        status = os.lstat(place)
    except OSError:
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def _is_checkpoint(name: str, below: str) -> bool:
    lower = name.lower()
    if not lower.endswith(SUFFIXES):
        return False
    return not lower.endswith(_ONLY_IF_NAMED) or bool({*words_of(name)} & _MODEL) or _in_folder(below)


def _in_folder(below: str) -> bool:
    return any(part.lower() in _FOLDERS for part in below.split("/"))


def _is_sharded(below: str, names: list[str]) -> bool:
    """Whether a folder as a whole is one checkpoint: its name has a step, and it holds no checkpoints of more steps."""
    before, _, name = below.rpartition("/")
    if not _SHARDED.fullmatch(name) or (name.isdigit() and not _in_folder(before)):
        return False
    if before.rpartition("/")[2].lower() in _FOLDERS or {*words_of(name)} & {"checkpoint", "ckpt"}:
        return True
    return any(one.lower().endswith(SUFFIXES) for one in names)
