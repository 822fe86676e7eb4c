"""What lies nearest to a file, by the folders that both are in. Pure.

Attempts share nothing: what one left is never near to what another left, however alike their folders are.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

Thing = TypeVar("Thing")
Way = tuple[str, ...]
"""folders, the one that is to agree first in front"""

_ATTEMPT = re.compile(r"(?:.*?/)?attempt-\d+(?=/)")
_LOOSE, _ALL = "", "*"
"""what lies in no attempt; what lies anywhere"""


def attempt_folder(path: str) -> str:
    """The folder of the attempt that left this file; empty where it lies in none."""
    found = _ATTEMPT.match(path)
    return found[0] if found else ""


class Near(Generic[Thing]):
    """Things under a name that several share, each with its attempt's folder and its way."""

    def __init__(self, things: Iterable[tuple[Hashable, str, Way, Thing]]) -> None:
        self._groups: defaultdict[tuple[str, Hashable], _Group[Thing]] = defaultdict(_Group)
        for name, attempt, way, thing in things:
            for place in (attempt or _LOOSE, _ALL):
                self._groups[place, name].add(way, thing)

    def of(self, name: Hashable, attempt: str, way: Way) -> Sequence[Thing]:
        """Those of this name with the longest way in common, in the order in which they came.

        Out of an attempt these are its own or, where it has none, those that lie in no attempt.
        """
        for place in (attempt, _LOOSE) if attempt else (_ALL,):
            if group := self._groups.get((place, name)):
                return group.nearest(way)
        return ()


class _Group(Generic[Thing]):
    """Things whose ways agree in their first `depth` folders; divided further only when somebody looks."""

    def __init__(self, depth: int = 0) -> None:
        self.things: list[Thing] = []
        self._depth = depth
        self._ways: list[Way] = []
        self._inner: dict[str, _Group[Thing]] | None = None

    def add(self, way: Way, thing: Thing) -> None:
        self._ways.append(way)
        self.things.append(thing)

    def nearest(self, way: Way) -> Sequence[Thing]:
        group = self
        for folder in way:
            inner = group._divided().get(folder) if len(group.things) > 1 else None
            if inner is None:
                break
            group = inner
        return group.things

    def _divided(self) -> dict[str, _Group[Thing]]:
        if self._inner is None:
            inner: defaultdict[str, _Group[Thing]] = defaultdict(lambda: _Group(self._depth + 1))
            for way, thing in zip(self._ways, self.things, strict=True):
                if len(way) > self._depth:
                    inner[way[self._depth]].add(way, thing)
            self._inner = dict(inner)
        return self._inner
