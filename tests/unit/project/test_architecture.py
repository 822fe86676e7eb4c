"""docs/architecture.md: its map leads to every section, and the rules of both halves stand where it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[3]
PAGE = (CHECKOUT / "docs/architecture.md").read_text()
MAP, _, REST = PAGE.partition("\n## Flow\n")
SECTIONS = re.findall(r"^## (.+)$", f"## Flow\n{REST}", re.MULTILINE)
RULES = re.findall(r"^\| (.+) \| `(.+\.py)` \| (.+) \| (.+) \|$", MAP, re.MULTILINE)


def anchor(section: str) -> str:
    """As GitHub names it."""
    return re.sub(r"[^\w\- ]", "", section.lower()).replace(" ", "-")


def named(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_the_map_leads_to_every_section_and_nowhere_else() -> None:
    assert sorted(re.findall(r"\]\(#([^)]+)\)", MAP)) == sorted(map(anchor, SECTIONS))


def test_there_are_rules_on_both_halves() -> None:
    assert len(RULES) > 5


@pytest.mark.parametrize(("python", "bash", "tests"), [rule[1:] for rule in RULES], ids=[rule[0] for rule in RULES])
def test_a_rule_of_both_halves_stands_where_the_map_says(python: str, bash: str, tests: str) -> None:
    places = [CHECKOUT / python]
    places += [CHECKOUT / "scripts" / ("" if name == "lib" else "lib") / name for name in named(bash)]
    places += [CHECKOUT / "tests" / name for name in named(tests)]
    assert [place for place in places if not place.exists()] == []
