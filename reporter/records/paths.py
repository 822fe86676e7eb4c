"""Finds the combo of a file that names none in the names of files and folders."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

UNNAMED = "unnamed"
"""if no file and no folder gives a name"""
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


def combo(path: str) -> tuple[str, str]:
    """Policy and environment of a file that names neither.

    The environment is in the file's own name or, when that says nothing (`log`, `eval_info.json`), in the innermost
    folder whose name says something; the policy is in the next one outward.
    """
    names = _telling(path)
    for name in reversed(names):
        if match := _MANISKILL.fullmatch(name):
            return match[2], match[1]
    outer, inner = (UNNAMED, UNNAMED, *names)[-2:]
    if match := _OPENVLA.fullmatch(inner):
        family = f"{match['family']}--{match['note']}" if match["note"] else match["family"]
        return (outer if len(names) > 1 else family), match["suite"]
    if len(names) > 2 and _EMBODIED_BENCH.fullmatch(names[-3]):  # eb_alfred/{model}_{experiment}/{eval set}/results/
        return outer, f"{names[-3]}/{inner}"
    return outer, inner


def policy(path: str, environments: Collection[str] = ()) -> str:
    """Of a file that names its environment and not its policy: the innermost folder, else the file's own name.

    Folders called like one of these environments, or like the task in it (`pick` of `env/pick`), hold a task.
    """
    tasks = {name.casefold() for environment in environments for name in (environment, environment.rpartition("/")[2])}
    folders = _telling(f"{PurePosixPath(path).parent}/out")
    candidates = (name for name in reversed(folders) if name.casefold() not in tasks)
    return next(candidates, (UNNAMED, *_telling(path))[-1])


def _telling(path: str) -> tuple[str, ...]:
    """The meaningful names in a path, the outermost first."""
    pure = PurePosixPath(path)
    found = [match[1] if (match := _RLINF.fullmatch(part)) else part for part in pure.parent.parts]
    return tuple(name for name in (*found, pure.stem) if name and not _SAYS_NOTHING.fullmatch(name))


def of_folder(folder: str) -> tuple[str, str]:
    """{checkpoint}/{scene}/{control}/{env}: the same environment in another scene is another one."""
    parts = PurePosixPath(folder).parts
    if len(parts) >= 4:
        return parts[-4], "/".join(parts[-3:])
    return combo(f"{folder}/out") if parts else (UNNAMED, UNNAMED)
