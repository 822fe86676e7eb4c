"""Reads episodes from the names of files: `success_obj_episode_7.mp4`, `failure_obj_0.1_-0.2.mp4`. Pure."""

from __future__ import annotations

import re
from collections import defaultdict

from comborun.rules.facts import Fact
from comborun.rules.results.readers import Reader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable, Iterator, Sequence, Tuple

    from comborun.rules.results.fields import Identity
    from comborun.rules.results.readers import Entry

    Key = Tuple[str, float, float]
    """the pose's folder, then the episode's number and 0, or the object's two coordinates"""

_VALUE = r"-?\d{1,12}(?:\.\d{1,12})?"
FILE = re.compile(
    rf"(?P<verdict>success|failure)_obj_(?:episode_(?P<episode>\d{{1,15}})|(?P<x>{_VALUE})_(?P<y>{_VALUE}))"
    r"(?P<rest>(?:_.*)?)\.(?:mp4|webm|avi|gif)"
)
"""a video whose name holds the result of an episode"""
_POSE = re.compile(r"rob_.*")
"""one folder for each pose of the robot; all belong to one environment"""
_FIELD = re.compile(rf"_([A-Za-z][A-Za-z_]*?)_(True|False|{_VALUE})(?=_|$)")
VIDEO = "video"
"""the field with the path of the file itself"""


def groups(paths: Iterable[str]) -> dict[str, list[str]]:
    """The files whose names are episodes, by the folder of their environment."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted(paths):
        parent, _, name = path.rpartition("/")
        if FILE.fullmatch(name):
            outer, _, pose = parent.rpartition("/")
            found[outer if _POSE.fullmatch(pose) else parent].append(path)
    return dict(found)


class Named(Reader):
    """The episodes of one group; `path` is its folder. Only names are read, never content."""

    def __init__(self, identity: Identity, folder: str, paths: Sequence[str]) -> None:
        super().__init__(identity.by(episode="episode"), folder)
        self._paths = paths

    def feed(self, data: bytes) -> Iterator[Entry]:
        del data
        return iter(())

    def finish(self) -> Iterator[Entry]:
        names = [*map(_Name, self._paths)]
        by_key: defaultdict[Key, list[_Name]] = defaultdict(list)
        for name in names:
            by_key[name.key].append(name)
        own = all(name.numbered for name in names) and len({name.key[0] for name in names}) == 1
        if not own and not _whole_grid(by_key):
            self.unpaired = "its episodes are numbered by their places, and some places are missing"
        for rank, key in enumerate(sorted(by_key)):
            row, remark = self._episode(by_key[key])
            yield 0, {**row, "episode": int(key[1])} if own else row, remark, None if own else rank

    def _episode(self, names: Sequence[_Name]) -> tuple[dict[str, Any], Fact | None]:
        """The row of one episode. If a rerun had another outcome there are two files, and their order is unknown."""
        first, alike = names[0], len({name.verdict for name in names}) == 1
        row = {**first.fields, self.identity.verdict_key: first.verdict if alike else None}
        if not alike:
            row["videos"] = [name.path for name in names]
            return row, Fact("named_both_ways")
        return row, Fact("named_alike", files=len(names)) if len(names) > 1 else None


class _Name:
    def __init__(self, path: str) -> None:
        parent, _, name = path.rpartition("/")
        self.path = path
        found = FILE.fullmatch(name)
        assert found  # `groups` has it
        pose, number = parent.rpartition("/")[2], found.group("episode")
        self.numbered = number is not None
        """by the program, not by us"""
        place = (float(number), 0.0) if self.numbered else (float(found.group("x")), float(found.group("y")))
        self.verdict = found.group("verdict") == "success"
        self.key: Key = (pose, *place)
        self.fields: dict[str, Any] = {
            key: value == "True" if value in ("True", "False") else float(value)
            for key, value in _FIELD.findall(found.group("rest"))
        }
        if not self.numbered:
            self.fields.update(obj_x=str(place[0]), obj_y=str(place[1]))
        if _POSE.fullmatch(pose):
            self.fields["pose"] = pose
        self.fields[VIDEO] = path


def _whole_grid(keys: Iterable[Key]) -> bool:
    """Whether every pose has every x with every y. Only then does a rank mean the same for another policy."""
    poses: defaultdict[str, set[tuple[float, float]]] = defaultdict(set)
    for pose, x, y in keys:
        poses[pose].add((x, y))
    grids = list(poses.values())
    columns, rows = ({place[axis] for place in grids[0]} for axis in (0, 1)) if grids else (set(), set())
    return all(grid == grids[0] and len(grid) == len(columns) * len(rows) for grid in grids)
