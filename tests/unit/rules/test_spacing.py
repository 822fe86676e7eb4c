"""When sessions start beside others, what an out-of-memory teaches, and how often a server is started again."""

from __future__ import annotations

import math

from comborun.rules.endings.breaker import failures, restart_wait_s
from comborun.rules.room.order import Stagger, WarmUp


def test_starts_on_a_gpu_are_apart_and_those_without_one_on_the_host() -> None:
    spacing = Stagger(5.0)
    spacing.started((0, 1), 10.0)
    spacing.started((), 12.0)
    assert [spacing.left(where, 13.0) for where in (0, 1, 2, None)] == [2.0, 2.0, 0.0, 4.0]
    assert (spacing.next(13.0), spacing.next(15.0), spacing.next(17.0)) == (15.0, 17.0, math.inf)
    assert Stagger(0.0).next(0.0) == math.inf


def test_one_that_fails_leaves_the_place_to_the_next_and_one_that_takes_too_long_keeps_nobody() -> None:
    warm = WarmUp(60.0)
    warm.programs = dict.fromkeys("abc", "p")
    assert not warm.started("server", 0.0), "it has no program"
    warm.started("a", 0.0)
    warm.failed("a")
    assert warm.started("b", 5.0)
    assert (warm.due(), warm.late(64.0), warm.late(65.0), warm.late(66.0)) == (65.0, [], ["b"], [])
    assert warm.due() == math.inf
    assert not warm.waits_for("c")


def test_a_server_fails_in_a_row_unless_it_was_ready_for_long_or_a_person_had_a_hand_in_it() -> None:
    assert failures([]) == (0, 0.0)
    assert failures([(300.0, None), (200.0, None), (100.0, None)]) == (3, 300.0)
    assert failures([(9000.0, None), (8000.0, 5000.0), (100.0, None)]) == (1, 9000.0), "that one was proven"
    assert failures([(9000.0, 100.0), (100.0, None)]) == (2, 9000.0)
    assert failures([(300.0, None), (None, None), (100.0, None)]) == (1, 300.0), "a person ended or forgave it"
    # the wait for the next start doubles
    assert [restart_wait_s(count, 2.0) for count in (0, 1, 2, 3, 8, 99)] == [0.0, 2.0, 4.0, 8.0, 256.0, 256.0]
