"""When a command that runs has done something, stalls, hangs with its work done, or takes too long."""

from __future__ import annotations

from comborun.rules.endings.evidence import Evidence, fact
from comborun.rules.endings.progress import Limits, ProgressWatch, Repetition


def course(**limits: float) -> ProgressWatch:
    return ProgressWatch(Limits(**limits), Repetition())


def live(one: ProgressWatch, seconds: float, **seen: float) -> None:
    """So many seconds, looked at every one of them."""
    for _ in range(int(seconds)):
        one.look(1.0, cpu=seen.get("cpu", 0.0))


def test_a_command_that_does_nothing_is_stalled_without_a_limit_after_a_time_of_its_own() -> None:
    for one in (course(tell=10), course(stall=10)):
        live(one, 9)
        assert not one.stalled
        live(one, 1)
        assert one.stalled
    assert one.why_stalled() == fact(Evidence.STALLED, seconds=10, core=0)
    assert one.why_stalled(2).count("stopped") == 2


def test_results_new_lines_and_cpu_time_are_progress() -> None:
    one = course(stall=10)
    for seen in ({"results": True}, {"news": True}, {"cpu": 0.5}):
        live(one, 9)
        assert one.look(1.0, **seen)
        assert one.silent == 0
    live(one, 20, cpu=0.02)
    assert one.stalled, "a look at the clock now and then is no work"


def test_who_complains_in_a_loop_makes_no_progress_by_cpu_time_until_it_is_silent() -> None:
    one = course(stall=10)
    assert one.look(1.0, news=one.repetition.look(b"connection refused\n" * 30, cut=False))
    assert one.complains
    for _ in range(10):
        assert not one.look(1.0, news=False, cpu=1.0)
    assert one.stalled
    assert one.why_stalled() == fact(Evidence.STALLED, seconds=10, line="connection refused", times=30)
    live(one, 5, cpu=1.0)
    assert not one.complains, "it may compute in silence now"
    assert one.silent < 2
    one.look(1.0, news=one.repetition.look(b"connection refused\n" * 60, cut=False))
    assert one.complains
    one.look(1.0, results=True)
    assert not one.complains, "a result ends what looked like a loop"


def test_a_program_that_is_done_and_writes_nothing_more_hangs() -> None:
    one = course(hang=10)
    live(one, 4, cpu=1.0)
    assert not one.asks_evidence
    live(one, 1, cpu=1.0)
    assert one.asks_evidence
    one.judged(complete=True)
    assert not one.asks_evidence
    assert one.done
    live(one, 4, cpu=1.0)
    one.look(1.0, output=True)
    assert not one.hung, "it still writes its output"
    live(one, 9, cpu=1.0)
    assert not one.hung
    live(one, 1, cpu=1.0)
    assert one.hung, "CPU time is not what is waited for"


def test_while_evidence_lacks_it_does_not_hang_and_is_judged_again_after_something_new() -> None:
    one = course(hang=10)
    live(one, 5)
    one.judged(complete=False)
    live(one, 100)
    assert not one.hung
    assert not one.asks_evidence
    one.look(1.0, news=True)
    live(one, 5)
    assert one.asks_evidence


def test_a_hang_limit_of_0_lets_it() -> None:
    one = course(hang=0)
    live(one, 1000)
    assert not one.asks_evidence
    one.judged(complete=True)
    assert not one.hung


def test_a_limit_of_time_counts_what_it_lived_through() -> None:
    one = course(most=10)
    live(one, 9)
    assert not one.overtime
    one.look(1.0, news=True)
    assert one.overtime


def test_before_it_is_judged_nothing_may_be_overlooked() -> None:
    one = course(hang=10, stall=20)
    live(one, 8)
    assert not one.limit_is_near(1.0)
    assert one.limit_is_near(2.0)
    one.look(1.0, news=True)
    live(one, 9)
    assert one.limit_is_near(1.0)
    assert course(hang=0, stall=5).limit_is_near(5.0)
