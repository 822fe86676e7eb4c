"""The arguments of commands, as a plan has them."""

from __future__ import annotations

from typing import NewType

BashWord = NewType("BashWord", str)
"""Text that bash reads as exactly one word: quoted literals and "$COMBORUN_..." (see session/command.py)."""
