"""What a person asked to be launched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from pathlib import Path

    from comborun.again.amend import Choice
    from comborun.cli.options import Where


@dataclass(frozen=True)
class Request:
    """The arguments of `combo launch` and `combo run`."""

    grid: Path
    where: Where
    parallel: int | None = None
    multiplexer: Literal["tmux", "screen"] | None = None
    new: bool = False
    changed: Choice | None = None
    smoke: int | None = None
    slurm: bool = False
