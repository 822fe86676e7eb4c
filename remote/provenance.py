"""The provenance of a run: what its manifest holds besides the plan."""

from __future__ import annotations

import hashlib
import platform
import subprocess
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from comborun.grid import Grid
    from comborun.remote.shipping import Shipment
    from comborun.resources import HostFacts

_OF_HOST = ("hostname", "cpus", "memory", "gpus", "bash", "tmux", "screen")


def provenance(grid: Grid, facts: HostFacts, shipments: Iterable[Shipment]) -> dict[str, Any]:
    """Versions, the host, and the state of the repositories of the grid and of what was shipped. Holds no time."""
    folder, preset = grid.path.parent, grid.program
    return {
        "python": platform.python_version(),
        "grid_sha256": hashlib.sha256(grid.text.encode("utf-8", "surrogateescape")).hexdigest(),
        **({"given": list(grid.given)} if grid.given else {}),
        "commit": _git(folder, "rev-parse", "HEAD"),
        "uncommitted": _changed(folder, "--untracked-files=no"),
        "host": {
            "name": facts.host,
            **{key: getattr(facts, key) for key in _OF_HOST},
            "cards": [card.name for card in facts.cards],
            "driver": next((card.driver for card in facts.cards), ""),
        },
        **facts.origins,
        "preset": {"name": preset.name, "sha256": preset.digest} if preset else None,
        "sync": [_shipped(shipment) for shipment in shipments],
    }


def _shipped(shipment: Shipment) -> dict[str, Any]:
    return {
        "from": shipment.entry.source,
        "to": shipment.entry.to,
        "files": len(shipment.items),
        "bytes": shipment.size,
        "sha256": shipment.digest,
        "converted": sum(getattr(item, "converted", False) for item in shipment.items),
        "commit": _git(shipment.home, "rev-parse", "HEAD"),
        "uncommitted": _changed(shipment.home, "--", str(shipment.source)),  # untracked files count: they were shipped
    }


def _changed(folder: Path, *which: str) -> bool | None:
    """Whether files differ from the commit; None outside a repository."""
    changes = _git(folder, "status", "--porcelain", *which)
    return None if changes is None else bool(changes)


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
