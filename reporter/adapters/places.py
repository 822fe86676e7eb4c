"""Where a result file lies -> the policy and the environment that it doesn't name itself. Pure.

The environment is in the file's own name or, when that says nothing (`log`, `eval_info.json`), in the innermost folder
whose name says something; the policy is in the next one outward.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Collection

UNNAMED = "unnamed"
"""for what no file and no folder names"""

_SAYS_NOTHING = re.compile(
    r"(?:attempt|episode|rank|shard|part|version|run|job|trial|worker)[-_]?\d*|seed[-_]?\d+|slurm(?:[-_]\d+)*"
    r"|out|outputs?|results?|logs?|runs|running|eval(?:uation)?s?|eval_info|eval_embodiment|metrics|videos?|stdout|stderr"
    r"|nohup|console|main|client|experiments?|rollouts?|sessions|summary|cosmos_log"
    r"|\d[\d_:.T-]*|episode_results(?:_rebuild\d+)?|episode_\d+_(?:final_)?res",
    re.IGNORECASE,
)
_RLINF = re.compile(r"\d{8}-\d\d:\d\d:\d\d-(.+)")
_MANISKILL = re.compile(r"(.+?)__(.+)__\d+__\d+")
_OPENVLA = re.compile(r"EVAL-(?P<suite>[^-]+)-(?P<family>.+?)-\d{4}_\d\d_\d\d-\d\d_\d\d_\d\d(?:--(?P<note>.+))?")
_EMBODIED_BENCH = re.compile(r"eb_[a-z]+")


@dataclass(frozen=True)
class Place:
    """Names that say something, the outermost first."""

    names: tuple[str, ...]

    @classmethod
    def of(cls, path: str) -> Self:
        pure = PurePosixPath(path)
        found = [match[1] if (match := _RLINF.fullmatch(part)) else part for part in pure.parent.parts]
        return cls(tuple(name for name in (*found, pure.stem) if name and not _SAYS_NOTHING.fullmatch(name)))

    def inner(self, count: int) -> str:
        """The `count`-th name from inside, from 0."""
        return self.names[-1 - count] if count < len(self.names) else UNNAMED


def combo(path: str) -> tuple[str, str]:
    """Policy and environment of a file that names neither."""
    place = Place.of(path)
    for name in reversed(place.names):
        if match := _MANISKILL.fullmatch(name):
            return match[2], match[1]
    return _openvla(place) or _embodied_bench(place) or (place.inner(1), place.inner(0))


def policy(path: str, environments: Collection[str] = ()) -> str:
    """Of a file that names its environment and not its policy: the innermost folder, else the file's own name.

    Folders called like one of these environments, or like the task in it (`pick` of `env/pick`), hold a task.
    """
    tasks = {name.casefold() for environment in environments for name in (environment, environment.rpartition("/")[2])}
    folders = Place.of(f"{PurePosixPath(path).parent}/out").names
    told = (name for name in reversed(folders) if name.casefold() not in tasks)
    return next(told, Place.of(path).inner(0))


def _openvla(place: Place) -> tuple[str, str] | None:
    match = _OPENVLA.fullmatch(place.inner(0))
    if not match:
        return None
    family = f"{match['family']}--{match['note']}" if match["note"] else match["family"]
    return (place.inner(1) if len(place.names) > 1 else family), match["suite"]


def _embodied_bench(place: Place) -> tuple[str, str] | None:
    """.../eb_alfred/{model}_{experiment}/{eval set}/results/FILE"""
    names = place.names
    if len(names) < 3 or not _EMBODIED_BENCH.fullmatch(names[-3]):
        return None
    return names[-2], f"{names[-3]}/{names[-1]}"
