"""What `combo` packs for hosts, packed once for all forks of `quick_combo`."""

from __future__ import annotations

import sys
from pathlib import Path

from comborun.remote.program import packed

for verb in ("facts", "publish", "amend", "reread", "runs", "logs", "fetch"):
    packed(verb)
sys.path.remove(str(Path(__file__).parent))
