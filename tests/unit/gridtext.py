"""Grids as text: what is planned for them, what is wrong with them, and what looks like a mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from comborun.errors import GridError
from comborun.grid import Grid, parse_grid
from comborun.model.plan import Plan
from comborun.model.resources import HostFacts
from comborun.planner.laying import lay_out
from comborun.rules.room.capacity import Card

FILE = Path("grid.yaml")
HOST = HostFacts("local", "h", 4, 0, (), "5", {"tmux": "3"}, ())


def host(gpus: int = 0, mib: int | None = None, cpus: int = 64) -> HostFacts:
    """A machine whose nvidia-smi tells so much memory of each GPU."""
    cards = tuple(Card(index, f"GPU-{index}", "", mib) for index in range(gpus))
    return HostFacts("local", "box", cpus, 256 << 30, tuple(range(gpus)), "5.2", {"tmux": "3.4"}, (), cards=cards)


def grid(text: str) -> Grid:
    return parse_grid(text, FILE)


def plan(text: str, host: HostFacts = HOST) -> Plan:
    return lay_out(grid(text), host)


def mistakes(text: str) -> str:
    with pytest.raises(GridError) as refused:
        grid(text)
    return "\n".join(map(str, refused.value.problems))


def warnings(text: str) -> str:
    return "\n".join(map(str, grid(text).warnings))
