"""`combo explain` and stopping single sessions, on a run that really runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from desk import ONE, Desk, desk_at, evaluate


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """A desk with a run of four sessions, of which the first runs."""
    with desk_at(tmp_path_factory.mktemp("live") / "a home") as there:
        there.launched(1, command=evaluate(pace=300), limits="{parallel: 1}")
        yield there


def test_it_says_whose_turn_it_is_and_how_the_one_before_goes(live: Desk) -> None:
    waits = live.json("explain", "field_poor")
    assert (waits["state"], waits["policy"], waits["environment"], waits["attempt"]) == ("queued", "poor", "field", 0)
    assert "2 sessions before it in the queue: field_good, maze_poor" in waits["reasons"]
    assert "1 of 1 slot busy" in waits["reasons"]
    assert any(one["command"].startswith("combo slots 2 --run little-") for one in waits["commands"])
    runs = live.combo("explain", "maze_good").stdout
    assert "maze_good (good in maze) is ● running" in runs
    assert "0 of 4 episodes done" in runs
    assert "combo attach maze_good --run little-" in runs


def test_it_says_how_a_session_ended_with_the_end_of_its_log(desk: Desk) -> None:
    assert desk.combo("run", desk.grid(command=evaluate(fail="half"), **ONE)).returncode == 1
    told = desk.json("explain", "maze_good")
    assert (told["state"], told["outcome"]) == ("ended", "partial")
    assert "exit code 0 after 2 of 4 episodes" in told["reasons"][0]
    assert any("its failure counts as `no_result`, which is not retried" in one for one in told["reasons"])
    assert [line.split(":")[0] for line in told["last_lines"]] == ["episode 0", "episode 1"]
    assert any(one["command"].startswith("combo retry maze_good ") for one in told["commands"])


def test_no_color_takes_all_colour(live: Desk) -> None:
    for environment, coloured in ({"NO_COLOR": "1"}, False), ({}, True):
        for session, words in ("maze_good", "good in maze"), ("nothing", "Error: "):
            _, shown = live.typed("explain", session, TERM="xterm", **environment)
            assert words in shown.replace("\x1b[0m", "")
            assert ("\x1b[" in shown) is coloured


def test_a_name_that_is_none_is_answered_with_what_was_meant(live: Desk) -> None:
    guessed = live.combo("explain", "maze_goood", code=0)
    assert "no session is called maze_goood: this is maze_good" in guessed.stderr
    for words in (("stop", "maze_goood"), ("stop", "little", "maze_goood"), ("stop", "--policy", "goood")):
        missed = live.combo(*words, code=2)
        assert "did you mean" in missed.stderr
    assert "did you mean `maze_good`" in live.combo("retry", "maze_goood").stderr
    for words in ((), ("--failed", "--stalled"), ("--failed", "maze_good")):
        live.combo("retry", *words, code=2)
    assert live.states["maze_good"] == "running"


def test_stop_ends_what_is_meant_and_nothing_else(desk: Desk) -> None:
    desk.launched(6, policies="[good, poor, poor1]", command=evaluate(pace=30), limits="{parallel: 6}")
    ended: set[str] = set()
    for words, ends in {
        ("maze_good",): {"maze_good"},
        ("--policy", "poor", "--environment", "field"): {"field_poor"},
        ("--policy", "poor1"): {"maze_poor1", "field_poor1"},
    }.items():
        desk.combo("stop", *words, code=0)
        ended |= ends
        assert {name for name, state in desk.states.items() if state != "running"} == ended
