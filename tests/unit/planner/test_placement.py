"""RLinf's placement strings: the examples of its documents and tests, each rule, and an oracle of another make."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from comborun.errors import UserError
from comborun.placement import MOST_PROCESSES, PlacementError, RlinfError, parse_placement

Placed = dict[int, list[int]]

ACCEPTED: list[tuple[str | int, int, Placed]] = [
    ("0", 8, {0: [0]}),
    (0, 8, {0: [0]}),
    (7, 8, {0: [7]}),
    ("0-3", 8, {0: [0], 1: [1], 2: [2], 3: [3]}),
    ("all", 4, {0: [0], 1: [1], 2: [2], 3: [3]}),
    (" All\t", 2, {0: [0], 1: [1]}),
    ("ALL : 0", 3, {0: [0, 1, 2]}),
    ("0-2,5,7", 8, {0: [0], 1: [1], 2: [2], 3: [5], 4: [7]}),
    ("0-1:0-3", 8, {0: [0], 1: [0], 2: [1], 3: [1]}),
    ("0-3:0-1", 8, {0: [0, 1], 1: [2, 3]}),
    ("0-3:0", 8, {0: [0, 1, 2, 3]}),
    ("0:0,1:1", 8, {0: [0], 1: [1]}),
    ("2-2:3-3", 4, {3: [2]}),  # the first process need not be 0; RLinf renumbers them later
    ("0:5,1", 4, {5: [0], 6: [1]}),
    ("0-1:0-3,3-5,7-10:7-14", 11, {**{i: [i // 2] for i in range(4)}, **{4 + i: [3 + i] for i in range(3)},
                                   **{7 + i: [7 + i // 2] for i in range(8)}}),
    (",, 0 ,,1,", 2, {0: [0], 1: [1]}),
    ("\n0-1\n", 2, {0: [0], 1: [1]}),
    ("+1 - +2", 4, {0: [1], 1: [2]}),
    ("1_0", 11, {0: [10]}),
    ("007", 8, {0: [7]}),
    ("٣", 4, {0: [3]}),
    ("０-１:０", 2, {0: [0, 1]}),
    ("\u20030\u00a0:\u20031\x1f", 1, {1: [0]}),
]  # fmt: skip

REFUSED: list[tuple[str | int, int, RlinfError, str]] = [
    ("0-1,1-2", 8, "AssertionError", "GPU 1 stands in a part before it"),
    ("0:0-1,1:1-2", 8, "AssertionError", "first process is 1, and 2 comes next"),
    ("3-1", 8, "AssertionError", "3 is above 1"),
    ("0:1-0", 8, "AssertionError", "1 is above 0"),
    ("0:all", 8, "AssertionError", "processes can't be `all`"),
    ("8", 8, "AssertionError", "there is no GPU 8: the host has 8, numbered 0 to 7"),
    ("2,1", 8, "AssertionError", "GPU 1 after 2"),
    ("0-1,all", 4, "AssertionError", "GPU 0 stands in a part before it"),
    ("0-2:0-1", 8, "AssertionError", "2 processes can't be dealt evenly to 3 GPUs"),
    ("all:0-2", 8, "AssertionError", "3 processes can't be dealt evenly to 8 GPUs"),
    ("0:0:0", 8, "AssertionError", "more than one colon"),
    (" , ,", 8, "AssertionError", "places no process"),
    (":0", 8, "AssertionError", "names no GPU"),
    ("0:", 8, "AssertionError", "names no process"),
    ("all", 0, "AssertionError", "the host has none"),
    ("a", 8, "ValueError", "neither a number nor two with a dash"),
    ("-1", 8, "ValueError", "neither a number"),
    ("0--1", 8, "ValueError", "neither a number"),
    ("1.0", 8, "ValueError", "neither a number"),
    ("1__0", 80, "ValueError", "neither a number"),
    ("0x1", 8, "ValueError", "neither a number"),
    ("²", 8, "ValueError", "neither a number"),
    ("all-all", 8, "ValueError", "neither a number"),
    ("8:a", 8, "AssertionError", "there is no GPU 8"),  # RLinf reads the GPUs first
    ("a:all", 8, "ValueError", "neither a number"),
    ("9" * 5000, 8, "ValueError", "neither a number"),  # more digits than int() takes
]


@pytest.mark.parametrize(("text", "resources", "placed"), ACCEPTED)
def test_what_rlinf_accepts_is_placed_as_rlinf_does(text: str | int, resources: int, placed: Placed) -> None:
    assert parse_placement(text, resources) == placed


@pytest.mark.parametrize(("text", "resources", "raises", "message"), REFUSED)
def test_what_rlinf_refuses_is_refused_with_its_error_in_mind(
    text: str | int, resources: int, raises: RlinfError, message: str
) -> None:
    with pytest.raises(PlacementError, match=re.escape(message)) as caught:
        parse_placement(text, resources)
    assert caught.value.raises == raises
    assert isinstance(caught.value, UserError)
    assert caught.value.hint


@pytest.mark.parametrize("count", ["99999999999999999999999", str(MOST_PROCESSES), "9" * 4300])
def test_more_processes_than_a_host_could_run_are_refused_at_once(count: str) -> None:
    with pytest.raises(PlacementError, match="no host runs so many"):
        parse_placement(f"0:0-{count}", 8)
    assert len(parse_placement(f"0:0-{MOST_PROCESSES - 1}", 1)) == MOST_PROCESSES


def judged(text: str, resources: int) -> Placed | RlinfError:
    """The same rules once more, over lists of numbers, as they stand in RLinf's documents. Slow and plain."""
    try:
        return _judged(text, resources)
    except ValueError:
        return "ValueError"
    except AssertionError:
        return "AssertionError"


def _judged(text: str, resources: int) -> Placed:
    there = list(range(resources))
    used: list[int] = []
    placed: Placed = {}
    for part in text.split(","):
        if part.strip() == "":
            continue
        gpu_side, colon, process_side = part.partition(":")
        assert ":" not in process_side
        gpus = there if gpu_side.strip().lower() == "all" else _numbers(gpu_side, there)
        assert gpus
        assert all(gpu > earlier for gpu in gpus for earlier in used)
        used += gpus
        follow = max(placed) + 1 if placed else None
        assert process_side.strip().lower() != "all"
        processes = _numbers(process_side, None) if colon else [(follow or 0) + place for place in range(len(gpus))]
        assert processes
        assert follow is None or processes[0] == follow
        shares = [len(processes) / len(gpus), len(gpus) / len(processes)]
        assert any(share.is_integer() for share in shares)
        for process, gpu in _pairs(processes, gpus):
            placed.setdefault(process, []).append(gpu)
    assert placed
    return placed


def _numbers(side: str, there: list[int] | None) -> list[int]:
    if not side.strip():
        return []
    match side.split("-"):
        case [one]:
            low = high = int(one)
        case [one, other]:
            low, high = int(one), int(other)
        case _:
            raise ValueError(side)
    assert low <= high
    assert there is None or {low, high} <= set(there)
    return list(range(low, high + 1))


def _pairs(processes: list[int], gpus: list[int]) -> list[tuple[int, int]]:
    """Both lists stretched to the length of the longer one, and read side by side."""
    longest = max(len(processes), len(gpus))
    stretched = [
        [number for number in numbers for _ in range(longest // len(numbers))] for numbers in (processes, gpus)
    ]
    return list(zip(*stretched, strict=True))


def answer(text: str, resources: int) -> Placed | RlinfError:
    try:
        return parse_placement(text, resources)
    except PlacementError as error:
        return error.raises


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


@settings(max_examples=300)
@given(STRING | SOUP, st.integers(0, 9))
@example("0-3:0-1,4:2-3,5-7", 8)
def test_an_independent_reading_of_the_rules_agrees(text: str, resources: int) -> None:
    assert answer(text, resources) == judged(text, resources)


def test_every_short_string_is_judged_alike() -> None:
    """All strings of up to five of the characters that matter, on three GPUs."""
    for length in range(6):
        for letters in itertools.product("012-:,", repeat=length):
            text = "".join(letters)
            assert answer(text, 3) == judged(text, 3), text
