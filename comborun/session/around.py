"""What is put around a session's command: files that it reads, a folder of links, a launcher, a container.

All of it is a part of the work.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Self, get_args

Runtime = Literal["docker", "apptainer"]
RUNTIMES: tuple[Runtime, ...] = get_args(Runtime)


@dataclass(frozen=True)
class Links:
    """The folder whose entries an attempt gets links to, in a folder of its own."""

    source: str
    """a bash word"""
    exclude: tuple[str, ...] = ()
    """patterns of entries that get no link"""


@dataclass(frozen=True)
class Container:
    image: str
    runtime: Runtime = "docker"
    mounts: tuple[str, ...] = ()
    """bash words: HOST:INSIDE or HOST:INSIDE:ro"""
    options: tuple[str, ...] = ()
    """bash words, handed to the runtime in front of the image"""


@dataclass(frozen=True)
class Around:
    files: tuple[tuple[str, str], ...] = ()
    """name and text, a bash word, of each file that is written before the command starts"""
    links: Links | None = None
    ranks: int = 0
    """processes that a launcher starts for the command; 0: it starts by itself"""
    container: Container | None = None

    @property
    def words(self) -> tuple[str, ...]:
        """All that may wait for the start of a session."""
        box = (self.container.image, *self.container.mounts, *self.container.options) if self.container else ()
        return (*(text for _, text in self.files), *box)

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> Self:
        links, container = data.get("links"), data.get("container")
        return cls(
            files=tuple((name, text) for name, text in data.get("files", ())),
            links=Links(links["source"], tuple(links["exclude"])) if links else None,
            ranks=data.get("ranks", 0),
            container=Container(**{**container, **{key: tuple(container[key]) for key in ("mounts", "options")}})
            if container
            else None,
        )


BARE = Around()
