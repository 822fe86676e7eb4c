"""Names in a run directory."""

from __future__ import annotations

import re

from comborun.rules.names import NAME, newest_plan


def test_the_newest_plan_has_the_highest_number_and_other_names_do_not_count() -> None:
    others = ["grid-20.yaml", "plan-x.json", "plan-0.json", "plan-07.json", "plan-9.json.part", "plan-1234567890.json"]
    assert newest_plan(["plan-2.json", "plan-10.json", "plan-9.json", *others]) == 10
    assert newest_plan(others) == newest_plan([]) == 1


def test_a_name_is_one_part_of_a_path() -> None:
    assert re.fullmatch(NAME, "Stairs-2_flat")
    assert re.fullmatch(NAME, "a" * 200)
    assert not any(re.fullmatch(NAME, name) for name in ("", "a/b", "..", "a b", "a\n", "ä", "a" * 201))
