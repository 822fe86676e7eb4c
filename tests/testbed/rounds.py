"""How often tests repeat what they draw at random."""

from __future__ import annotations

import os

ALL = bool(os.environ.get("COMBORUN_SLOW"))


def rounds(many: int) -> int:
    """So many with COMBORUN_SLOW=1, else two fifths."""
    return many if ALL else max(1, many * 2 // 5)
