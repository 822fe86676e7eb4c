"""What a `combo` does at its first grid and its first question to a host, done once for all forks of `quick_combo`."""

from __future__ import annotations

import sys
from pathlib import Path

from comborun.grid.file import parse_grid
from comborun.remote.program import packed

for verb in ("facts", "publish", "amend", "reread", "runs", "logs", "fetch", "doctor", "sync"):
    packed(verb)
parse_grid("policies: [p]\nenvironments: [e]\nepisodes: 1\ncommand: run {output_dir} {episodes}\n", Path("grid.yaml"))
sys.path.remove(str(Path(__file__).parent))
