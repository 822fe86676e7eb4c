"""Names in a run directory."""

from __future__ import annotations

import re

from comborun.rules.names import NAME


def test_a_name_is_one_part_of_a_path() -> None:
    assert re.fullmatch(NAME, "Stairs-2_flat")
    assert re.fullmatch(NAME, "a" * 200)
    assert not any(re.fullmatch(NAME, name) for name in ("", "a/b", "..", "a b", "a\n", "ä", "a" * 201))
