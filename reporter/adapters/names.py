"""What the names of files and folders say: the combo of a file that names none, and episodes that are file names."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from comborun.reporter.adapters.reading import UNNAMED, Defect, Reading

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from comborun.reporter.adapters.reading import Context

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

_VALUE = r"-?\d{1,12}(?:\.\d{1,12})?"
FILE = re.compile(
    rf"(?P<verdict>success|failure)_obj_(?:episode_(?P<episode>\d{{1,15}})|(?P<x>{_VALUE})_(?P<y>{_VALUE}))"
    r"(?P<rest>(?:_.*)?)\.(?:mp4|webm|avi|gif)"
)
"""`success_obj_episode_7.mp4`, `failure_obj_0.1_-0.2.mp4`: a video whose name is all that is left of an episode"""
_POSE = re.compile(r"rob_.*")
"""a folder per pose of the robot, all of one environment"""
_FIELD = re.compile(rf"_([A-Za-z][A-Za-z_]*?)_(True|False|{_VALUE})(?=_|$)")

Key = tuple[str, float, float]
"""the pose's folder, then the episode's number and 0, or the object's place"""


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
    told = (name for name in reversed(folders) if name.casefold() not in tasks)
    return next(told, (UNNAMED, *_telling(path))[-1])


def _telling(path: str) -> tuple[str, ...]:
    """The names in a path that say something, the outermost first."""
    pure = PurePosixPath(path)
    found = [match[1] if (match := _RLINF.fullmatch(part)) else part for part in pure.parent.parts]
    return tuple(name for name in (*found, pure.stem) if name and not _SAYS_NOTHING.fullmatch(name))


@dataclass(frozen=True)
class _Name:
    path: str
    verdict: bool
    key: Key
    numbered: bool
    """by the program, not by us"""
    fields: Mapping[str, Any]

    @classmethod
    def of(cls, path: str) -> _Name | None:
        pure = PurePosixPath(path)
        match = FILE.fullmatch(pure.name)
        if not match:
            return None
        numbered = match["episode"] is not None
        place = (float(match["episode"]), 0.0) if numbered else (float(match["x"]), float(match["y"]))
        fields: dict[str, Any] = {
            key: value == "True" if value in {"True", "False"} else float(value)
            for key, value in _FIELD.findall(match["rest"])
        }
        if not numbered:
            fields |= {"obj_x": str(place[0]), "obj_y": str(place[1])}
        if _POSE.fullmatch(pure.parent.name):
            fields["pose"] = pure.parent.name
        return cls(path, match["verdict"] == "success", (pure.parent.name, *place), numbered, {**fields, "video": path})


def groups(paths: Iterable[str]) -> dict[str, list[str]]:
    """The files that one environment's episodes are told by, by the folder that holds them or their poses' folders."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted(paths):
        if FILE.fullmatch(PurePosixPath(path).name):
            parent = PurePosixPath(path).parent
            found[str(parent.parent if _POSE.fullmatch(parent.name) else parent)].append(path)
    return dict(found)


def read_names(paths: Sequence[str], context: Context) -> Reading:
    """The episodes of one group; `context.path` is its folder."""
    reading = Reading(context.path, "filename-encoded", "outcomes in files' names")
    names = [name for path in paths if (name := _Name.of(path))]
    context = context.named(*_folder_combo(context.path))
    by_key: defaultdict[Key, list[_Name]] = defaultdict(list)
    for name in names:
        by_key[name.key].append(name)
    own = all(name.numbered for name in names) and len({name.key[0] for name in names}) == 1
    for rank, key in enumerate(sorted(by_key)):
        _take(reading, context, context.rules.base + int(key[1]) if own else context.first + rank, by_key[key])
    if not own and not _whole_grid(by_key):
        reading.unpaired = "its episodes are numbered by their places, and some places are missing"
    return reading


def _take(reading: Reading, context: Context, index: int, names: Sequence[_Name]) -> None:
    """A rerun that went the other way leaves a second file, and nothing says which of the two came first."""
    first, success = names[0], context.verdict_key
    alike = len({name.verdict for name in names}) == 1
    fields = {**first.fields, success: first.verdict if alike else None}
    if not alike:
        fields["videos"] = [name.path for name in names]
        told = "success and failure both: a rerun went the other way, and the files don't say which was first: errored"
        reading.defects.append(Defect(first.path, 0, told))
    elif len(names) > 1:
        reading.defects.append(Defect(first.path, 0, f"{len(names)} files tell of the same episode, and the same"))
    reading.take_episode(replace(context, path=first.path), 0, index, fields)


def _whole_grid(keys: Iterable[Key]) -> bool:
    """Whether every pose has every x with every y: only then does a rank mean the same for another policy."""
    poses: defaultdict[str, set[tuple[float, float]]] = defaultdict(set)
    for pose, x, y in keys:
        poses[pose].add((x, y))
    grids = list(poses.values())
    columns, rows = ({place[axis] for place in grids[0]} for axis in (0, 1)) if grids else (set(), set())
    return all(grid == grids[0] and len(grid) == len(columns) * len(rows) for grid in grids)


def _folder_combo(folder: str) -> tuple[str, str]:
    """{checkpoint}/{scene}/{control}/{env}: the same environment in another scene is another one."""
    parts = PurePosixPath(folder).parts
    if len(parts) >= 4:
        return parts[-4], "/".join(parts[-3:])
    return combo(f"{folder}/out") if parts else (UNNAMED, UNNAMED)
