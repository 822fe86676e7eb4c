"""When to look next."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from monitor_stage import NOW, Seen, a_plan, a_session, a_view, an_answer

from comborun.monitor.answer import parse_snapshot
from comborun.monitor.classify import classify
from comborun.monitor.observe import History, fold
from comborun.monitor.snapshot import Mark
from comborun.monitor.status import Expected, RunStatus
from comborun.monitor.watch import backoff, calm, due, pause
from comborun.rules.words import Life

PLAN = a_plan([a_session("act", "grass"), a_session("act", "stairs")], after=True)


def status(*seen: Seen, **header: str) -> RunStatus:
    return classify(a_view(PLAN), fold(History(), parse_snapshot(an_answer(*seen, **header))))  # type: ignore[arg-type]


def looks(interval: float, until: float, due_at: float | None = None) -> list[float]:
    """The moments of the looks after a change at 0, when nothing else happens."""
    moments = [0.0]
    while moments[-1] < until:
        now = moments[-1]
        moments.append(now + pause(interval, now, None if due_at is None else abs(due_at - now)))
    return moments


def test_after_a_change_the_looks_double_their_distance_up_to_the_interval() -> None:
    assert looks(60.0, 240) == [0, 2, 4, 8, 16, 32, 64, 124, 184, 244]


def test_there_is_a_look_when_a_session_is_expected_to_end_and_again_soon_when_it_does_not() -> None:
    assert looks(60.0, 300, due_at=130) == [0, 2, 4, 8, 16, 32, 64, 124, 130, 132, 134, 138, 146, 162, 194, 254, 314]


def test_a_short_interval_is_kept_to() -> None:
    assert looks(0.5, 2) == [0, 0.5, 1, 1.5, 2]
    assert pause(0.5, 1000.0, 0.0) == 0.5


POSITIVE = st.floats(0, 1e7)


@given(st.floats(0.1, 3600), POSITIVE, st.none() | POSITIVE)
def test_no_look_is_later_than_the_interval_nor_sooner_than_two_seconds(
    interval: float, quiet: float, soon: float | None
) -> None:
    assert min(2.0, interval) <= pause(interval, quiet, soon) <= interval


@pytest.mark.parametrize(
    ("interval", "failures", "seconds"), [(600, 1, 2), (600, 2, 4), (600, 6, 60), (600, 5000, 60), (10, 9, 10)]
)
def test_a_silent_host_is_asked_less_and_less_often_within_bounds(
    interval: float, failures: int, seconds: float
) -> None:
    assert backoff(interval, failures, 1.0) == seconds
    assert backoff(interval, failures, 0.0) == seconds / 2


def test_a_launch_is_a_change() -> None:
    assert calm(status(Seen("grass_act", started=NOW - 7)), watched=500) == 7
    assert calm(status(Seen("grass_act", started=NOW - 700), Seen("stairs_act", started=NOW - 5)), watched=500) == 5


def test_an_end_is_a_change() -> None:
    assert calm(status(Seen("grass_act", started=NOW - 700).ended(records=100, ended=NOW - 30)), watched=500) == 30
    assert calm(status(Seen("after", started=NOW - 9).ended(ended=NOW - 3)), watched=500) == 3


def test_that_a_session_has_done_all_it_was_to_do_is_a_change_and_other_progress_is_none() -> None:
    assert calm(status(Seen("grass_act", started=NOW - 700, counts=(100, 3))), watched=500) == 0
    assert calm(status(Seen("grass_act", started=NOW - 700, counts=(99, 3))), watched=500) == 700


def test_where_nothing_has_begun_the_first_look_counts() -> None:
    assert calm(status(), watched=5) == 5
    assert calm(classify(a_view(PLAN), History()), watched=5) == 5


def test_the_first_session_that_is_expected_to_end_is_due() -> None:
    seen = (Seen("grass_act", counts=(50, 1)), Seen("stairs_act", counts=(80, 1)))
    assert due(status(*seen)) == 25
    assert due(status()) is None
    assert due(classify(a_view(PLAN), History())) is None


def test_a_retry_that_is_about_to_start_is_due_and_one_that_is_late_is_not() -> None:
    failed = Seen("grass_act").ended("exited", "none", code=1)
    wait = "waiting session=grass_act for=retry until={} detail="
    assert due(status(failed, host=(wait.format(NOW + 40),))) == 40  # type: ignore[arg-type]
    assert due(status(failed, host=(wait.format(NOW - 1),))) is None  # type: ignore[arg-type]


def test_what_has_done_everything_or_has_ended_is_not_due() -> None:
    assert due(status(Seen("grass_act", counts=(100, 1)), Seen("stairs_act").ended(records=100))) is None


def test_a_session_that_hangs_at_its_last_episode_is_looked_at_less_and_less_often() -> None:
    hung = status(Seen("grass_act", started=NOW - 9900, counts=(99, 1)))
    (one, two) = hung.sessions
    late = Expected(NOW, NOW, NOW)
    for silent_for in (1.0, 30.0, 3000.0):
        one = replace(one, expected=late, marks=(Mark(NOW - silent_for, 99),))
        assert due(replace(hung, sessions=(one, two))) == silent_for
    assert due(replace(hung, sessions=(replace(one, expected=late, marks=()), two))) == 9900
    assert one.life is Life.RUNNING
