"""Where a run comes from: what the manifest says besides the plan."""

from __future__ import annotations

import hashlib
import platform
import subprocess
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from comborun.grid import Preset
    from comborun.remote.shipping import Shipment
    from comborun.resources import HostFacts


def provenance(grid: Path, grid_text: str, facts: HostFacts) -> dict[str, Any]:
    """Versions, the host, and the state of the repository that holds the grid file. Holds no time."""
    return {
        "python": platform.python_version(),
        "grid_sha256": hashlib.sha256(grid_text.encode("utf-8", "surrogateescape")).hexdigest(),
        "commit": _git(grid.parent, "rev-parse", "HEAD"),
        "uncommitted": _uncommitted(grid.parent),
        "host": {
            "name": facts.host,
            "hostname": facts.hostname,
            "cpus": facts.cpus,
            "memory": facts.memory,
            "gpus": list(facts.gpus),
            "bash": facts.bash,
            "tmux": facts.tmux,
            "screen": facts.screen,
        },
    }


def preset_origin(preset: Preset | None) -> dict[str, str] | None:
    """What the grid's preset was, when the run was planned."""
    return {"name": preset.name, "sha256": preset.digest} if preset else None


def shipped_origin(shipments: Iterable[Shipment]) -> list[dict[str, Any]]:
    """What was shipped, and the state of the repository that it comes from; untracked files count."""
    return [
        {
            "from": shipment.entry.source,
            "to": shipment.entry.to,
            "files": len(shipment.items),
            "bytes": shipment.size,
            "sha256": shipment.digest,
            "converted": sum(file.content.converted for file in shipment.files),
            "commit": _git(shipment.home, "rev-parse", "HEAD"),
            "uncommitted": _changed_below(shipment),
        }
        for shipment in shipments
    ]


def _changed_below(shipment: Shipment) -> bool | None:
    changes = _git(shipment.home, "status", "--porcelain", "--", str(shipment.source))
    return None if changes is None else bool(changes)


def _uncommitted(folder: Path) -> bool | None:
    """Whether tracked files differ from the commit; None outside a repository."""
    changes = _git(folder, "status", "--porcelain", "--untracked-files=no")
    return None if changes is None else bool(changes)


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
