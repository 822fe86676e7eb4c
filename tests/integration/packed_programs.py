"""What a `combo` does at its first grid, question to a host and report, done once for all forks of `quick_combo`."""

from __future__ import annotations

import gc
import sys
from pathlib import Path

from comborun.grid.file import parse_grid
from comborun.remote.program import packed
from comborun.reporter.pages.page import TEMPLATES, _environment

for verb in ("facts", "publish", "amend", "reread", "runs", "logs", "fetch", "doctor", "sync"):
    packed(verb)
parse_grid("policies: [p]\nenvironments: [e]\nepisodes: 1\ncommand: run {output_dir} {episodes}\n", Path("grid.yaml"))
for template in TEMPLATES.glob("*.j2"):
    _environment().get_template(template.name)
gc.freeze()  # a fork looks for no garbage in what it never changes
sys.path.remove(str(Path(__file__).parent))
