"""RLinf's placement strings: the examples of its documents and tests, and each rule."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rounds import rounds

from comborun.model.placement import MOST_PROCESSES, PlacementError, parse_placement

Placed = dict[int, list[int]]

ACCEPTED: list[tuple[str | int, int, Placed]] = [
    ("0", 8, {0: [0]}),
    (0, 8, {0: [0]}),
    ("0-3", 8, {0: [0], 1: [1], 2: [2], 3: [3]}),
    ("all", 4, {0: [0], 1: [1], 2: [2], 3: [3]}),
    ("ALL : 0", 3, {0: [0, 1, 2]}),
    ("0-1:0-3", 8, {0: [0], 1: [0], 2: [1], 3: [1]}),
    ("0-3:0-1", 8, {0: [0, 1], 1: [2, 3]}),
    ("2-2:3-3", 4, {3: [2]}),  # the first process need not be 0; RLinf renumbers them later
    ("0:5,1", 4, {5: [0], 6: [1]}),
    ("0-1:0-3,3-5,7-10:7-14", 11, {**{i: [i // 2] for i in range(4)}, **{4 + i: [3 + i] for i in range(3)},
                                   **{7 + i: [7 + i // 2] for i in range(8)}}),
    ("\u20030\u00a0:\u20031\x1f", 1, {1: [0]}),
]  # fmt: skip

REFUSED: list[tuple[str, int, str]] = [
    ("0-1,1-2", 8, "an earlier part has GPU 1 already"),
    ("0:0-1,1:1-2", 8, "first process is 1, and 2 comes next"),
    ("3-1", 8, "3 is above 1"),
    ("0:all", 8, "processes can't be `all`"),
    ("8", 8, "there is no GPU 8: the host has 8, numbered 0 to 7"),
    ("2,1", 8, "GPU 1 after 2"),
    ("0-2:0-1", 8, "2 processes can't be shared out evenly to 3 GPUs"),
    ("0:0:0", 8, "more than one colon"),
    (" , ,", 8, "places no process"),
    (":0", 8, "names no GPU"),
    ("0:", 8, "names no process"),
    ("all", 0, "the host has no GPU"),
    ("a", 8, "neither a number nor a range"),
    ("8:a", 8, "there is no GPU 8"),  # RLinf reads the GPUs first
    ("9" * 5000, 8, "neither a number"),  # more digits than int() takes
]


@pytest.mark.parametrize(("text", "resources", "placed"), ACCEPTED)
def test_what_rlinf_accepts_is_placed_as_rlinf_does(text: str | int, resources: int, placed: Placed) -> None:
    assert parse_placement(text, resources) == placed


@pytest.mark.parametrize(("text", "resources", "message"), REFUSED)
def test_what_rlinf_refuses_is_refused(text: str, resources: int, message: str) -> None:
    with pytest.raises(PlacementError, match=re.escape(message)):
        parse_placement(text, resources)


@pytest.mark.parametrize("count", ["99999999999999999999999", str(MOST_PROCESSES), "9" * 4300])
def test_more_processes_than_a_host_could_run_are_refused_at_once(count: str) -> None:
    with pytest.raises(PlacementError, match="too many processes"):
        parse_placement(f"0:0-{count}", 8)
    assert len(parse_placement(f"0:0-{MOST_PROCESSES - 1}", 1)) == MOST_PROCESSES


NUMBER = st.integers(0, 9).flatmap(
    lambda n: st.sampled_from([f"{n}", f" {n}", f"{n} ", f"+{n}", f"0{n}", f"0_{n}", chr(0x0660 + n), chr(0xFF10 + n)])
)
PLAIN = st.integers(0, 9).map(str)
N = PLAIN | PLAIN | NUMBER
RANGE = N | st.tuples(N, N).map("-".join)
SIDE = RANGE | st.sampled_from(["all", "ALL", " aLl ", "", " ", "a", "-", "1-", "1-2-3", "-1", "1.5", "1_", "all-1"])
PART = SIDE | st.tuples(RANGE, RANGE).map(":".join) | st.tuples(SIDE, SIDE).map(":".join) | st.just("0:1:2")
STRING = st.lists(PART, max_size=4).map(",".join)
SOUP = st.text(st.sampled_from("0123 9-:,+_alLx.\u00a0\n٣"), max_size=12)


@settings(max_examples=rounds(300))
@given(STRING | SOUP, st.integers(0, 9))
@example("0-3:0-1,4:2-3,5-7", 8)
def test_whatever_is_written_is_placed_by_the_rules_or_refused(text: str, resources: int) -> None:
    try:
        placed = parse_placement(text, resources)
    except PlacementError:
        return
    first = min(placed)
    assert [*placed] == [*range(first, first + len(placed))]
    gpus = [gpu for own in placed.values() for gpu in own]
    assert gpus == sorted(gpus)
    assert set(gpus) <= {*range(resources)}
    assert all(own == [*range(own[0], own[0] + len(own))] for own in placed.values())
