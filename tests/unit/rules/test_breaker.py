"""Rows of failures on a GPU and on the host, which of them are long enough, and how many failures halt a run."""

from __future__ import annotations

import json

import pytest

from comborun.rules.endings.breaker import Breaker, barred, too_many
from comborun.rules.endings.failures import HOST


def trips(breaker: Breaker, failure: str, *gpus: int) -> list[tuple[str, str, int]]:
    return [(where, failure, times) for where, times in breaker.record(failure, gpus).items()]


def test_the_same_failure_in_a_row_trips_the_host_when_a_session_has_no_gpu() -> None:
    breaker, endless = Breaker(3), Breaker(0)
    assert [trips(breaker, "crashed") for _ in range(3)] == [[], [], [(HOST, "crashed", 3)]]
    assert [trips(endless, "crashed") for _ in range(9)] == [[]] * 9, "without a limit"


def test_another_failure_and_a_success_begin_a_new_row() -> None:
    breaker = Breaker(2)
    assert [trips(breaker, failure) for failure in ("crashed", "killed", "crashed")] == [[], [], []]
    assert breaker.succeeded(())
    assert not breaker.succeeded(())
    assert trips(breaker, "crashed") == []


def test_a_gpu_is_closed_once_and_stays_closed() -> None:
    breaker = Breaker(2)
    assert [trips(breaker, "gpu_fault", 1) for _ in range(4)] == [[], [("1", "gpu_fault", 2)], [], []]
    assert breaker.quarantine == {"1": "gpu_fault"}
    assert trips(breaker, "gpu_fault", 0, 1) == []
    assert trips(breaker, "gpu_fault", 0, 1) == [("0", "gpu_fault", 2)]


@pytest.mark.parametrize("failure", ["host_memory", "disk_full", "launch_failed"])
def test_what_speaks_of_the_host_counts_there_whichever_gpu_it_was(failure: str) -> None:
    breaker = Breaker(1)
    assert trips(breaker, failure, 0, 1) == [(HOST, failure, 1)]


@pytest.mark.parametrize("failure", ["error", "no_result", "timed_out", "preempted", "", "garbage"])
def test_what_the_program_did_itself_counts_nowhere(failure: str) -> None:
    assert trips(Breaker(1), failure, 0) == []


def test_a_success_on_one_gpu_says_nothing_of_another() -> None:
    breaker = Breaker(2)
    trips(breaker, "crashed", 0)
    assert not breaker.succeeded((1,))
    assert trips(breaker, "crashed", 0) == [("0", "crashed", 2)]


def test_rows_outlive_their_dispatcher_and_what_is_no_row_is_passed_over() -> None:
    before = Breaker(3)
    for gpu in (0, 0, 12):
        before.record("stalled", (gpu,))
    after = Breaker(3, before.rows() + "x\ty\t1\nhost\tlost\t2\n4\tbad class\t1\n", "7\tlost\t3.5\nx\ty\tz\n\t\n")
    assert after.counts == {"0": ("stalled", 2), "12": ("stalled", 1), HOST: ("lost", 2)}
    assert after.quarantine == {"7": "lost"}
    assert trips(after, "stalled", 0) == [("0", "stalled", 3)]
    again = [(one.name, one.failure, one.since) for one in barred(after.quarantined("9.5"), "gpu")]
    assert again == [("7", "lost", "3.5"), ("0", "stalled", "9.5")]


def test_a_streak_of_one_environment_closes_it_while_others_make_progress() -> None:
    breaker = Breaker(3)
    streaks = [breaker.record("gpu_memory", (0,), "push", lambda: True) for _ in range(3)]
    assert streaks == [{}, {}, {}]
    assert (breaker.closed, breaker.quarantine, breaker.counts) == ({"push": "gpu_memory"}, {}, {})
    assert breaker.record("gpu_memory", (0,), "push", lambda: True) == {}, "the last of its running ones count no more"
    known = Breaker(3, breaker.rows(), breaker.quarantined("9.5"))
    assert known.closed == {"push": "gpu_memory"}
    assert [(one.name, one.since) for one in barred(known.quarantined("12"), "environment")] == [("push", "9.5")]
    assert barred(known.quarantined("12"), "gpu") == []


@pytest.mark.parametrize(
    ("environments", "others"), [(("push", "push", "pour"), True), (("push",) * 3, False), (("",) * 3, True)]
)
def test_failures_of_several_environments_or_without_others_are_the_hosts(
    environments: tuple[str, ...], others: bool
) -> None:
    breaker = Breaker(3)
    streaks = []
    for environment in environments:  # a dispatcher that was killed in between knows the same
        breaker = Breaker(3, breaker.rows())
        streaks.append(breaker.record("launch_failed", (), environment, lambda: others))
    assert streaks == [{}, {}, {HOST: 3}]
    assert not breaker.closed


def test_each_line_of_its_state_is_a_record() -> None:
    breaker = Breaker(1)
    breaker.record("crashed", (3,))
    assert json.loads(breaker.rows()) == {"place": "3", "class": "crashed", "times": 1}
    assert json.loads(breaker.quarantined("9.5")) == {"gpu": "3", "class": "crashed", "since": "9.5"}
    assert Breaker(1, breaker.rows(), breaker.quarantined("9.5")).counts == breaker.counts


# Fail-fast


@pytest.mark.parametrize(
    ("count", "total", "limit", "percent", "expected"),
    [
        (1, 6, 2, 0, None),
        (2, 6, 2, 0, (2, 0)),
        (2, 6, 0, 30, (0, 30)),
        (1, 6, 0, 30, None),
        (3, 6, 2, 30, (2, 30)),
        (6, 6, 0, 0, None),
        (0, 0, 0, 30, None),
    ],
)
def test_a_number_or_a_share_is_enough(
    count: int, total: int, limit: int, percent: int, expected: tuple[int, int] | None
) -> None:
    found = too_many(count, total, limit, percent)
    assert (found and (found.count("limit"), found.count("percent"))) == expected
    assert found is None or (found.count("failed"), found.count("sessions")) == (count, total)


def test_few_environments_trip_nothing_while_others_are_untried() -> None:
    breaker = Breaker(3)

    def crash(environment: str, failure: str = "crashed") -> dict[str, int]:
        return breaker.record(failure, (), environment, untried=lambda: True)

    assert [crash(one) for one in ("maze", "maze", "maze", "maze", "hall", "hall")] == [{}] * 6
    assert crash("yard") == {HOST: 7}, "as many environments as the limit: it is the host"
    assert breaker.record("crashed", (), "maze") == {HOST: 8}, "nothing is untried"
    breaker.succeeded(())
    assert [crash("maze", "disk_full") for _ in range(3)][-1] == {HOST: 3}, "this speaks of the host at once"
    assert breaker.closed == {}
