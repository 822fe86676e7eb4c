"""What the records say about sessions and the run."""

from __future__ import annotations

from dataclasses import replace

import pytest
from monitor_stage import BOOT, NOW, Seen, a_plan, a_session, a_view, an_answer, picture, status_of

from comborun.answers import data_of
from comborun.model.codec import as_data
from comborun.monitor.document import answer
from comborun.monitor.screen import changes
from comborun.monitor.status import RunStatus, SessionStatus
from comborun.rules.endings.evidence import Evidence, fact
from comborun.rules.facts import Fact
from comborun.rules.facts import data_of as facts_data
from comborun.rules.results.counts import NO_EPISODE, NO_MATCH, UNDECIDED
from comborun.rules.vocabulary import Life, Outcome

SESSION = a_session("act", "grass")
VIEW = a_view(a_plan([SESSION]))


def run(*seen: Seen, **header: object) -> RunStatus:
    return status_of(VIEW, an_answer(*seen, **header))  # type: ignore[arg-type]


def only(*seen: Seen) -> SessionStatus:
    return status_of(VIEW, an_answer(*seen)).sessions[0]


@pytest.mark.parametrize(
    ("seen", "life", "outcome", "note"),
    [
        ([], Life.QUEUED, None, ""),
        ([Seen("grass_act", started=None, life="starting", claimed=False, log=None)], Life.STARTING, None, ""),
        ([Seen("grass_act", started=None, life="starting", log=None)], Life.STARTING, None, ""),
        (
            [Seen("grass_act", started=None, life="lost", log=None)],
            Life.ENDED,
            Outcome.LOST,
            "its supervisor died before it began",
        ),
        ([Seen("grass_act")], Life.RUNNING, None, ""),
        ([Seen("grass_act", stalled=NOW - 1500)], Life.STALLED, None, "no progress for 25 min"),
        ([Seen("grass_act", life="orphaned")], Life.ORPHANED, None, ""),
        ([Seen("grass_act", life="lost")], Life.ENDED, Outcome.LOST, "nobody saw it end"),
        ([Seen("grass_act").ended(records=100)], Life.ENDED, Outcome.SUCCEEDED, ""),
    ],
)
def test_life_and_outcome_follow_from_the_files_and_from_what_lives(
    seen: list[Seen], life: Life, outcome: Outcome | None, note: str
) -> None:
    session = only(*seen)
    assert (session.life, session.outcome, session.note) == (life, outcome, note)
    assert session.attempt == len(seen)
    assert session.alive == (life not in (Life.QUEUED, Life.ENDED))
    assert (session.idle is not None) == (session.alive and life is not Life.STARTING)


def test_counts_of_states_add_up_and_no_more_run_than_there_are_slots() -> None:
    """The slot of a session is free before its end is on record."""
    plan = a_plan([a_session("act", f"scene{at}") for at in range(8)], parallel=2)
    names = [one.name for one in plan.sessions]
    seen = [*(Seen(name, closing=True) for name in names[:4]), *(Seen(name) for name in names[4:6])]
    status = status_of(a_view(plan), an_answer(*seen, slots=2))
    assert status.counts() == {"ending": 4, "running": 2, "queued": 2}
    assert len(status.busy) == status.slots


def test_what_runs_shows_its_progress_and_its_times() -> None:
    session = only(Seen("grass_act", counts=(62, 55), log=b"episode 61\n", changed=NOW - 14))
    assert (session.done, session.planned, session.successes) == (62, 100, 55)
    assert (session.idle, session.seconds, session.last_line) == (14, 100, "episode 61")
    ended = only(Seen("grass_act").ended(records=100, successes=91, ended=NOW - 40))
    assert (ended.done, ended.successes, ended.seconds) == (100, 91, 60)
    assert only(Seen("grass_act", log=None)).idle == 100, "without a log it is idle since its start"
    assert only(Seen("grass_act", changed=NOW - 60, written=NOW - 2)).idle == 2, "its newest record counts, too"
    assert only(Seen("grass_act", changed=NOW - 3, written=NOW - 90)).idle == 3


def test_what_passed_before_a_retry_is_no_time_of_the_run() -> None:
    plan = a_plan([a_session("act", "grass")])
    first = Seen("grass_act", started=NOW - 9000).ended("exited", "none", code=1, ended=NOW - 8900)
    again = Seen("grass_act", 2, started=NOW - 60)
    status = status_of(a_view(plan), an_answer(first, again))
    assert (status.started, status.seconds) == (NOW - 9000, 160)
    ended = again.ended(records=100, ended=NOW - 10)
    assert status_of(a_view(plan), an_answer(first, ended, done={"at": NOW})).seconds == 150
    assert status_of(a_view(plan), an_answer()).seconds is None


def test_an_attempt_that_goes_on_adds_to_what_was_done_before_it() -> None:
    session = only(
        Seen("grass_act").ended("lost", "partial", records=99, successes=99),
        Seen("grass_act", 2).ended("lost", "partial", records=40, successes=30),
        Seen("grass_act", 3, first=40, counts=(3, 1)),
    )
    assert (session.done, session.successes) == (43, 31)


ENDED = Seen("grass_act").ended(records=100, ended=NOW - 30)


@pytest.mark.parametrize(
    ("seen", "header", "finished"),
    [
        (ENDED, {}, False),
        (ENDED, {"done": {"at": 1}}, True),
        (ENDED, {"done": {"at": 1}, "dispatcher": None}, True),
        (Seen("grass_act"), {"done": {"at": 1}}, False),
        (None, {"dispatcher": None}, False),
        (None, {"stopped": True, "dispatcher": None}, True),
        (Seen("grass_act"), {"stopped": True}, False),
        (Seen("grass_act", life="orphaned"), {"stopped": True}, False),
    ],
)
def test_a_run_has_finished_when_it_is_done_or_stopped_and_nothing_lives(
    seen: Seen | None, header: dict[str, object], finished: bool
) -> None:
    assert run(*([seen] if seen else []), **header).finished is finished


ROUGH = "all 10 rows say policy 'rough', this session is 'act'"


@pytest.mark.parametrize(
    "seen",
    [
        Seen("grass_act", why=ROUGH, log=b"[10/100]"),
        Seen("grass_act").ended("exited", "none", code=0, rows=10, verdicts=0, why=ROUGH),
    ],
)
def test_why_rows_do_not_count_stands_wherever_the_session_is_shown(seen: Seen) -> None:
    status = run(seen)
    assert (status.sessions[0].done, status.sessions[0].successes, status.sessions[0].recorded) == (0, 0, 0)
    assert ROUGH in status.sessions[0].remark
    assert data_of(answer(status))["sessions"][0]["uncounted"] == ROUGH
    assert ROUGH in "\n".join(changes(None, status))


def test_what_can_not_be_counted_is_unknown_and_records_without_a_verdict_are_done_and_no_success() -> None:
    session = only(Seen("grass_act", countable=False, why="more than 2000 result files"))
    assert (session.recorded, session.successes, session.uncounted) == (None, None, "more than 2000 result files")
    session = only(Seen("grass_act").ended("exited", "partial", code=0, records=100, verdicts=0))
    assert (session.outcome, session.done, session.recorded, session.successes) == (Outcome.PARTIAL, 100, 0, 0)


def test_an_episode_that_two_sessions_are_for_is_planned_and_done_once() -> None:
    gap = replace(a_session("act", "grass", 4), name="grass_act_e2-5", first=2)
    view = a_view(a_plan([SESSION, gap, a_session("act", "maze", 10)]))
    both = [Seen("grass_act").ended(records=100, successes=1), Seen(gap.name, first=2).ended(records=4, successes=4)]
    for seen, done in ((both, 100), (both[1:], 4)):
        status = status_of(view, an_answer(*seen))
        assert (status.done, status.planned) == (done, 110)


def test_a_smoke_test_and_what_was_amended_away_are_not_among_the_planned() -> None:
    smoke = replace(a_session("act", "grass", 2), name="grass_act_smoke", flag="smoke")
    gone = replace(a_session("act", "lawn"), flag="dropped")
    view = a_view(a_plan([smoke, SESSION, a_session("act", "stairs"), gone]))
    status = status_of(view, an_answer(Seen("grass_act_smoke").ended(records=2, successes=2)))
    assert [one.name for one in status.sessions] == ["grass_act_smoke", "grass_act", "stairs_act"]
    assert (status.done, status.planned) == (0, 200)
    assert (status.counts(), status.smoke()) == ({"queued": 2}, {"succeeded": 1})
    alive = status_of(view, an_answer(Seen("lawn_act"))).sessions[-1]
    assert (alive.part, alive.extra) == ("superseded", True)


def test_sessions_of_one_combo_are_told_apart_by_their_ranges() -> None:
    more = replace(a_session("act", "grass"), name="grass_act_e100-149", first=100, count=50)
    status = status_of(a_view(a_plan([SESSION, a_session("act", "stairs"), more])), an_answer())
    assert [one.part for one in status.sessions] == ["0–99", "", "100–149"]


# Many sessions that are gone at once are one event of the host

NAMES = ("grass", "stairs", "maze", "field")
MANY = a_view(a_plan([a_session("act", name) for name in NAMES]))
OTHER = b"6f1c0c5e-0000-4000-8000-000000000002"


def of_many(*seen: Seen, restarted: bool = False, dispatcher: int | None = None) -> RunStatus:
    """`restarted`: the host has booted since; the first boot id in an answer is the probe's own."""
    answer = an_answer(*seen, dispatcher=dispatcher)
    return status_of(MANY, answer.replace(BOOT.encode(), OTHER, 1) if restarted else answer)


def gone(name: str, changed: float = NOW - 60, **fields: object) -> Seen:
    return replace(Seen(f"{name}_act", life="lost", changed=changed), **fields)  # type: ignore[arg-type]


BURIED = [Seen(f"{name}_act").ended("lost", "partial", code="", records=7) for name in ("stairs", "maze")]


@pytest.mark.parametrize(
    ("seen", "restarted", "dispatcher", "sessions"),
    [
        ([Seen("grass_act").ended(records=100), gone("stairs", NOW - 75), gone("maze")], True, None, "stairs maze"),
        ([gone("maze")], True, 4242, "maze"),
        ([gone("maze"), gone("field", started=None, log=None)], True, None, "maze field"),
        (BURIED, True, 4242, "stairs maze"),
        ([*BURIED, Seen("stairs_act", 2)], True, 4242, "maze"),
        ([gone("grass"), gone("stairs"), gone("maze")], False, None, "grass stairs maze"),
        ([gone("grass"), gone("stairs"), Seen("maze_act")], False, None, ""),
        ([gone("grass"), gone("stairs")], False, 4242, ""),
        ([gone("grass")], False, None, ""),
    ],
    ids=[
        "of another boot",
        "one of another boot",
        "one that died before it began belongs to the restart",
        "ends that the next dispatcher wrote change nothing",
        "until they start anew",
        "all that vanish under one boot with their dispatcher",
        "others live",
        "the dispatcher lives",
        "one alone",
    ],
)
def test_sessions_that_are_gone_together_are_one_event(
    seen: list[Seen], restarted: bool, dispatcher: int | None, sessions: str
) -> None:
    status = of_many(*seen, restarted=restarted, dispatcher=dispatcher)
    named = tuple(f"{name}_act" for name in sessions.split())
    event = status.outage
    assert (event.sessions if event else ()) == named
    assert not event or event.kind == ("restarted" if restarted else "vanished")
    assert all(not one.note for one in status.sessions if one.name in named), "it takes the place of their notes"
    assert data_of(answer(status))["host_event"] == as_data(event)


def test_a_log_tells_the_event_in_one_line_and_once() -> None:
    before = of_many(Seen("stairs_act"), Seen("maze_act"), dispatcher=4242)
    after = of_many(gone("stairs"), gone("maze"), restarted=True)
    lines = changes(before, after)
    assert "gpu-box rebooted after" in lines[0]
    assert "2 sessions that ran before are lost" in lines[0]
    assert not [line for line in lines if "? " in line]
    assert changes(after, replace(after, now=NOW + 60)) == []
    anew = changes(after, of_many(gone("stairs"), gone("maze"), Seen("maze_act", 2), restarted=True))
    assert any(line.endswith("● maze_act: running, attempt 2") for line in anew)
    assert not [line for line in anew if "started again" in line]


def test_no_reason_about_results_hides_the_error_that_ended_a_program() -> None:
    log_says = facts_data([fact(Evidence.LOG_SAYS, said="KeyError: 'cup'")])
    crash = {"code": 1, "class": "error", "ending": log_says}
    nothing = facts_data([Fact(NO_EPISODE, files=["log.txt"], count=1)])
    crashed = only(Seen("grass_act").ended("exited", "none", facts=nothing, **crash))
    assert not crashed.reasons
    partly = facts_data([Fact(NO_MATCH, patterns=["*.csv"], files=["a.txt"], count=1)])
    other = only(Seen("grass_act").ended("exited", "none", facts=partly, **crash))
    assert other.remark.index("KeyError") < other.remark.index("*.csv")
    well = only(Seen("grass_act").ended("exited", "none", facts=nothing))
    assert [one.code for one in well.reasons] == [NO_EPISODE]


def test_one_reason_of_several_sessions_is_told_once_whatever_files_it_names() -> None:
    def seen(name: str, code: str, of: str) -> Seen:
        facts = facts_data([Fact(code, patterns=["*.csv"], files=[of], count=1)])
        return Seen(name).ended("exited", "none", facts=facts)

    sessions = [a_session("act", one) for one in ("grass", "stairs", "maze")]
    ends = (seen("grass_act", NO_MATCH, "a.txt"), seen("stairs_act", NO_MATCH, "b"), seen("maze_act", NO_EPISODE, "c"))
    status = status_of(a_view(a_plan(sessions)), an_answer(*ends))
    same, other = status.uncounted
    assert (same.partition(":")[0], other.partition(":")[0]) == ("grass_act", "maze_act")
    assert same.endswith("(and 1 more like this)")


@pytest.mark.parametrize(("field", "counts"), [("success", False), ("solved", True), ("", True)])
def test_0_and_1_are_no_verdicts_where_another_session_shows_that_the_field_holds_numbers(
    field: str, counts: bool
) -> None:
    """As the report counts: in a run whose field holds 0 to 4, a session that has only 0 and 1 has no successes."""
    why = Fact(UNDECIDED, rows=10, of=10, values=["0", "1", "4"], field="success", numbers=True)
    odd = Seen("grass_act").ended(records=10, verdicts=0, completeness="partial", facts=[why.as_data()])
    alike = Seen("grass_pi").ended(records=10, successes=6, numeric=field)
    view = a_view(a_plan([a_session("act", "grass"), a_session("pi", "grass")]))
    seen = status_of(view, an_answer(odd, alike)).sessions[1]
    assert (seen.successes, seen.recorded) == ((6, 10) if counts else (0, 0))
    assert seen.outcome is (Outcome.SUCCEEDED if counts else Outcome.PARTIAL)
    assert bool(seen.reasons) is not counts


def test_an_attempt_that_was_called_off_before_it_began_makes_the_next_one_no_repetition() -> None:
    called_off = Seen("grass_act", started=None).ended("stopped", "none")
    first = run(called_off, Seen("grass_act", attempt=2))
    assert first.sessions[0].attempt == 2
    assert "attempt" not in picture(first, 160) + "".join(changes(None, first))
    again = run(called_off, Seen("grass_act", attempt=2).ended("exited", "none"), Seen("grass_act", attempt=3))
    assert "attempt" in picture(again, 160)
    assert "attempt 3" in "".join(changes(None, again))
