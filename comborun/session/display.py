"""The X display of a session, as a plan has it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

XVFB = "xvfb"
DEFAULT_GEOMETRY = "1280x1024x24"


@dataclass(frozen=True)
class Display:
    """The X display of a session: one of its own, one that is there, or one for each GPU."""

    server: str = ""
    """`xvfb`, or the number of an X server that is there; empty where `by_gpu` says it"""
    by_gpu: tuple[tuple[int, int], ...] = ()
    """index of a GPU -> number of the X server that is bound to it"""
    geometry: str = DEFAULT_GEOMETRY
    """width x height x depth, of an own one"""

    @property
    def own(self) -> bool:
        return self.server == XVFB

    @property
    def token(self) -> str:
        """Of the X server that only one session may have at a time; empty where it need not be alone."""
        return f"display-{self.server}" if self.server and not self.own else ""

    def word(self) -> str:
        """As the session's script has it."""
        if self.by_gpu:
            return " ".join(f"{gpu}=:{number}" for gpu, number in self.by_gpu)
        return self.server if self.own else f":{self.server}"

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Self:
        return cls(data["server"], tuple((gpu, number) for gpu, number in data["by_gpu"]), data["geometry"])
