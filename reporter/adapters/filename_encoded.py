"""Episodes of which nothing is left but their videos' names: `success_obj_episode_7.mp4`, `failure_obj_0.1_-0.2.mp4`.

A rerun that went the other way leaves a second file, and nothing says which of the two came first.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from comborun.reporter.adapters import CautionKind, places
from comborun.reporter.adapters.findings import Findings, named

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from comborun.reporter.adapters import Context, Reading

_NUMBER = r"-?\d{1,12}(?:\.\d{1,12})?"
FILE = re.compile(
    rf"(?P<verdict>success|failure)_obj_(?:episode_(?P<episode>\d{{1,15}})|(?P<x>{_NUMBER})_(?P<y>{_NUMBER}))"
    r"(?P<rest>(?:_.*)?)\.(?:mp4|webm|avi|gif)"
)
_POSE = re.compile(r"rob_.*")
"""a folder per pose of the robot, all of one environment"""
_FIELD = re.compile(r"_([A-Za-z][A-Za-z_]*?)_(True|False|-?\d{1,12}(?:\.\d{1,12})?)(?=_|$)")

Key = tuple[str, float, float]
"""the pose's folder, then the episode's number and 0, or the object's place"""


@dataclass(frozen=True)
class _Name:
    path: str
    verdict: bool
    key: Key
    numbered: bool
    """by the program, not by us"""
    fields: Mapping[str, Any]


def groups(paths: Iterable[str]) -> dict[str, list[str]]:
    """The files that one environment's episodes are told by, by the folder that holds them or their poses' folders."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted(paths):
        if FILE.fullmatch(PurePosixPath(path).name):
            found[_root(path)].append(path)
    return dict(found)


def read(paths: Sequence[str], context: Context) -> Reading:
    """The episodes of one group; `context.path` is its folder."""
    names = [name for path in paths if (name := _name(path))]
    policy, environment = _combo(context.path)
    findings = Findings(named(context, policy, environment))
    by_key: defaultdict[Key, list[_Name]] = defaultdict(list)
    for name in names:
        by_key[name.key].append(name)
    own = all(name.numbered for name in names) and len({name.key[0] for name in names}) == 1
    for rank, key in enumerate(sorted(by_key)):
        _take(findings, int(key[1]) if own else findings.context.first + rank, by_key[key])
    if not own and not _whole_grid(by_key):
        findings.caution(CautionKind.UNPAIRED, "its episodes are numbered by their places, and some places are missing")
    return findings.reading()


def _name(path: str) -> _Name | None:
    pure = PurePosixPath(path)
    match = FILE.fullmatch(pure.name)
    if not match:
        return None
    numbered = match["episode"] is not None
    place = (float(match["episode"]), 0.0) if numbered else (float(match["x"]), float(match["y"]))
    fields: dict[str, Any] = {key: _value(value) for key, value in _FIELD.findall(match["rest"])}
    if not numbered:
        fields |= {"obj_x": str(place[0]), "obj_y": str(place[1])}
    if _POSE.fullmatch(pure.parent.name):
        fields["pose"] = pure.parent.name
    return _Name(path, match["verdict"] == "success", (pure.parent.name, *place), numbered, {**fields, "video": path})


def _value(text: str) -> bool | float:
    return text == "True" if text in {"True", "False"} else float(text)


def _take(findings: Findings, index: int, names: Sequence[_Name]) -> None:
    first = names[0]
    success = findings.context.rules.success
    at = replace(findings, context=replace(findings.context, path=first.path))
    if len({name.verdict for name in names}) == 1:
        at.take_episode(0, index, {**first.fields, success: first.verdict})
        if len(names) > 1:
            at.defect(0, f"{len(names)} files tell of the same episode, and the same")
        return
    at.take_episode(0, index, {**first.fields, success: None, "videos": [name.path for name in names]})
    at.defect(
        0, "success and failure both: a rerun went the other way, and the files don't say which was first: errored"
    )


def _whole_grid(keys: Iterable[Key]) -> bool:
    """Whether every pose has every x with every y: only then does a rank mean the same for another policy."""
    poses: defaultdict[str, set[tuple[float, float]]] = defaultdict(set)
    for pose, x, y in keys:
        poses[pose].add((x, y))
    grids = list(poses.values())
    columns, rows = ({place[axis] for place in grids[0]} for axis in (0, 1)) if grids else (set(), set())
    return all(grid == grids[0] and len(grid) == len(columns) * len(rows) for grid in grids)


def _root(path: str) -> str:
    parent = PurePosixPath(path).parent
    return str(parent.parent if _POSE.fullmatch(parent.name) else parent)


def _combo(folder: str) -> tuple[str, str]:
    """{checkpoint}/{scene}/{control}/{env}: the same environment in another scene is another one."""
    parts = PurePosixPath(folder).parts
    if len(parts) >= 4:
        return parts[-4], "/".join(parts[-3:])
    return places.combo(f"{folder}/out") if parts else (places.UNNAMED, places.UNNAMED)
