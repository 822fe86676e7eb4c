"""What must hold after every fault, whatever it was: the same check for all of them, made as a user would make it."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from typing import Any

from box import until
from ground import Ground
from laptop import episodes as episodes_in

Key = tuple[str, str, int]
"""policy, environment, episode"""


def planned(*policies: str, environments: Collection[str] = ("maze",), episodes: int = 4) -> set[Key]:
    return {(policy, place, number) for policy in policies for place in environments for number in range(episodes)}


def accounted_for(ground: Ground, episodes: set[Key], missing: Collection[Key] = ()) -> dict[str, Any]:
    """Every planned episode is in the report exactly once or named there as missing, and nothing of the run lives.

    `missing` are those that should be; returns the report's document."""
    target = ground.desk.home / "accounts"
    ground.combo("report", *ground.of_run(), "--output", target, ground.run.id)
    document = json.loads((target / "final_benchmark_report.json").read_text())
    told, named = episodes_in(target), set(named_missing(document))
    assert {key: count for key, count in told.items() if count > 1} == {}, "no episode is in the report twice"
    assert set(told) & named == set(), "none is there and named as missing"
    untold = sorted((set(told) | named) ^ episodes)
    assert not untold, f"every planned episode, and no other, but {untold}\n{ground.story}"
    wrong = sorted(named ^ set(missing))
    assert not wrong, f"missing is what should be, but {wrong}\n{ground.story}"
    totals = document["totals"]
    assert (totals["planned"], totals["missing"]) == (len(episodes), len(named))
    nothing_lives(ground)
    return document


def named_missing(document: dict[str, Any]) -> Iterator[Key]:
    for combo in document["combos"]:
        for span in filter(None, (combo["missing_episodes"] or "").split(", ")):
            first, _, last = span.partition("-")
            for episode in range(int(first), int(last or first) + 1):
                yield combo["policy"], combo["environment"], episode


def nothing_lives(ground: Ground) -> None:
    """No process with the run's marker, no window, no server of windows, no dispatcher."""
    until(lambda: not ground.marked(), lambda: f"no marked process lives\n{ground.story}")
    until(lambda: not ground.everything(), lambda: f"no window lives, and no dispatcher\n{ground.story}")
