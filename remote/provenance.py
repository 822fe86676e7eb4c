"""Where a run comes from: what the manifest says besides the plan."""

from __future__ import annotations

import hashlib
import platform
import subprocess
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from comborun.facts import HostFacts


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
