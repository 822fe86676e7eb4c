"""A progress bar that starts again for each part of the work: never more than was done, never less than was seen."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st
from monitor_stage import NOW, Seen, a_plan, a_session, a_view, an_answer

from comborun.judging import ProgressRules
from comborun.monitor.answer import parse_snapshot
from comborun.monitor.classify import classify
from comborun.monitor.observe import History, fold
from comborun.monitor.progress import NOTHING, Look, Share, counted
from comborun.monitor.status import RunStatus
from comborun.plan import Plan
from comborun.rules import counting

TASK = 50
BATCHES = 5
RULES = ProgressRules(r"eval batches:.*?(\d+)/(\d+) \[", each=TASK)
PLANNED = Share(0, 500)
BEFORE = NOW - 100
"""when the attempt of `Seen` began"""
PREAMBLE = b"Making policy.\n" * 300
"""more of a log than a look at its end shows"""


def bars(*numbers: int) -> bytes:
    drawn = (
        f"\rStepping through eval batches:  0%|      | {number}/{BATCHES} [00:10<00:10, 2.0s/it]\n"
        f"\rRunning rollout with at most 280 steps:  1%|      | 2/280 [00:00<00:40]\x1b[A"
        for number in numbers
    )
    return "".join(drawn).encode()


def after(*looks: tuple[int, ...], share: Share = PLANNED) -> list[int | None]:
    """What is done after each of these looks, 10 s from one to the next in parts of a thousand."""
    counter, found = NOTHING, []
    for index, numbers in enumerate(looks):
        counter = counted(counter, counting.lines(bars(*numbers), cut=False), RULES, share, Look(10.0 * index))
        found.append(counter.done)
    return found


@pytest.mark.parametrize(
    ("looks", "done"),
    [
        (((0, 1), (1, 2), (4, 5), (5, 0), (1, 2)), [10, 20, 50, 50, 70]),
        (((4,), (1,), (0,)), [40, 60, 100]),
        (((4,), (4,), (5,)), [40, 40, 50]),
        (((5, 0, 1),), [60]),
        (((5, 0, 1), (5, 0, 1, 2), (0, 1, 2)), [60, 70, 70]),
        (((4, 5), (4, 5, 0, 1, 5, 0), (0,)), [50, 100, 100]),
        (((), (3,), (), (2,)), [None, 30, 30, 70]),
        (((4,), (5, 0, 4)), [40, 90]),
    ],
    ids=str,
)
def test_parts_that_passed_and_the_share_of_the_one_under_way_are_done(
    looks: tuple[tuple[int, ...], ...], done: list[int | None]
) -> None:
    assert after(*looks) == done


def test_it_is_at_most_the_planned_number_also_where_the_bar_goes_on() -> None:
    assert after((5,), (0,), (3,), (0,), share=Share(0, 70)) == [50, 50, 70, 70]
    assert after((5,), (0,), (3,), share=Share(0, 0)) == [50, 50, 80]


def test_it_never_goes_back_where_a_bar_has_another_total_than_before() -> None:
    counter = counted(NOTHING, counting.lines(b"eval batches: 3/5 [", cut=False), RULES, PLANNED)
    assert counted(counter, counting.lines(b"eval batches: 3/10 [", cut=False), RULES, PLANNED).done == 30


@given(
    batches=st.integers(1, 7),
    parts=st.integers(1, 6),
    looks=st.lists(st.tuples(st.integers(0, 60), st.integers(0, 900)), max_size=12),
)
def test_however_it_is_looked_at_it_is_never_more_than_was_done_and_never_goes_back(
    batches: int, parts: int, looks: list[tuple[int, int]]
) -> None:
    drawn = [(part, number) for part in range(parts) for number in range(batches + 1)]
    lines = [f"\rStepping through eval batches: | {number}/{batches} [00:10".encode() for _, number in drawn]
    counter = NOTHING
    for until, tail in sorted(looks):
        log = b"".join(lines[: until + 1])
        part, number = drawn[min(until, len(drawn) - 1)]
        seen = counting.lines(log[-tail:] if tail else b"", cut=tail < len(log))
        later = counted(counter, seen, RULES, Share(0, parts * TASK), Look(float(until)))
        assert (counter.done or 0) <= (later.done or 0) <= part * TASK + number * TASK // batches
        counter = later


# From the probe to the status


@dataclass(frozen=True)
class At:
    """One look: so long after the attempt began, at a log that ends so."""

    age: float
    log: bytes
    whole: bool = False
    """the log has nothing before that"""

    def answer(self) -> bytes:
        seen = Seen("libero_act", started=BEFORE, log=self.log, size=None if self.whole else 99_999)
        return an_answer(seen, now=BEFORE + self.age)


def status_of(*answers: bytes, files: tuple[str, ...] = ()) -> RunStatus:
    plan = a_plan([a_session("act", "libero", count=500, files=files, progress=RULES)])
    view, history = a_view(plan), History()
    sessions = {session.name: session for session in plan.sessions}
    for answer in answers:
        history = fold(history, parse_snapshot(answer), sessions)
    return classify(view, history)


def told(*looks: At) -> tuple[int | None, float | None]:
    """Done, and in how many seconds the end is expected."""
    status = status_of(*(look.answer() for look in looks))
    expected = status.sessions[0].expected
    return status.sessions[0].done, expected.likeliest - (status.now or 0) if expected else None


WATCHED = tuple(At(100.0 * number, bars(number), whole=not number) for number in range(BATCHES + 1))


def test_who_watches_from_the_beginning_is_told_when_it_will_end() -> None:
    assert told(*WATCHED) == (50, 500 * 9)
    assert told(*WATCHED, At(600, bars(5, 0, 1))) == (60, pytest.approx(600 / 60 * 440))


def test_a_log_that_began_after_the_last_look_was_watched_from_its_beginning() -> None:
    before = an_answer(now=BEFORE - 5)
    assert status_of(before, At(50, bars(0)).answer(), At(150, bars(1)).answer()).sessions[0].expected


def test_who_comes_later_is_told_what_is_done_at_least_and_no_end() -> None:
    late = At(60_000, PREAMBLE + bars(0, 1))
    assert told(late) == (10, None)
    assert told(late, At(60_100, bars(2)), At(60_400, bars(5)), At(60_500, bars(0))) == (50, None)
    assert status_of(late.answer()).expected is None


def test_a_part_that_may_have_passed_out_of_sight_leaves_no_end_to_tell() -> None:
    asleep = At(9_000, bars(3))
    assert told(*WATCHED[:4], asleep) == (30, None)
    assert told(*WATCHED[:4], asleep, At(9_100, bars(4)), At(9_300, bars(0))) == (50, None)


def test_a_link_that_is_lost_for_less_than_a_part_leaves_the_end_told() -> None:
    assert told(*WATCHED[:4], At(500, bars(5))) == (50, 500 * 9)


def test_records_that_tell_as_much_need_no_bar() -> None:
    seen = Seen("libero_act", started=BEFORE, counts=(120, 3), log=PREAMBLE + bars(2))
    session = status_of(an_answer(seen, now=BEFORE + 1200), files=("*.jsonl",)).sessions[0]
    assert session.done == 120
    assert session.expected
    assert session.expected.likeliest == BEFORE + 5000


def test_whose_evidence_is_complete_has_done_all_and_who_was_cut_short_what_was_seen() -> None:
    def ended(completeness: str) -> int | None:
        seen = Seen("libero_act", started=BEFORE).ended(completeness=completeness, records=0, log=bars(5))
        return status_of(At(60_000, PREAMBLE + bars(2)).answer(), an_answer(seen)).sessions[0].done

    assert (ended("complete"), ended("partial")) == (500, 50)
    without_log = Seen("libero_act", started=BEFORE).ended(records=0)
    assert status_of(an_answer(without_log)).sessions[0].done == 500


def test_another_attempt_counts_its_parts_anew() -> None:
    first = Seen("libero_act", started=BEFORE, log=bars(4))
    lost = Seen("libero_act", started=BEFORE).ended("lost", "none", records=0, log=bars(5, 0))
    again = Seen("libero_act", 2, started=NOW, log=bars(1))
    answers = (an_answer(first), an_answer(lost), an_answer(lost, again, now=NOW + 10))
    assert status_of(*answers).sessions[0].done == 10


def test_a_piece_that_was_cut_while_the_log_grew_is_no_smaller_number() -> None:
    log = b"4/5 [00:10\rStepping on"
    grown = Seen("libero_act", started=BEFORE, log=log, size=len(log) - 1)
    plan = a_plan([a_session("act", "libero", count=500, progress=ProgressRules(r"(\d+)/(\d+) \[", each=TASK))])
    history = fold(History(), parse_snapshot(an_answer(grown)), {one.name: one for one in plan.sessions})
    assert history.of("libero_act")[0].counter.done is None


def test_a_plan_keeps_it_and_one_of_before_had_none() -> None:
    plan = a_plan([a_session("act", "libero", progress=RULES)])
    assert Plan.from_json(plan.to_json()).sessions[0].progress == RULES
    older = plan.to_json().replace(f'"each": {TASK}', '"guess": true').replace(f'"each":{TASK}', '"guess":true')
    assert Plan.from_json(older).sessions[0].progress.each == 0
