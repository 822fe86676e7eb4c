"""What the records say about sessions and the run."""

from __future__ import annotations

from dataclasses import replace

import pytest
from monitor_stage import NOW, Seen, a_busy_run, a_plan, a_session, a_view, an_answer
from recorded import record

from comborun.attempt import End
from comborun.monitor.answer import parse_snapshot
from comborun.monitor.changes import changes
from comborun.monitor.classify import classify
from comborun.monitor.document import document
from comborun.monitor.observe import History, RunView, fold
from comborun.monitor.session import note
from comborun.monitor.status import RunStatus, SessionStatus
from comborun.monitor.wording import remark
from comborun.rules.tally import marked
from comborun.rules.words import Life, Outcome

SESSION = a_session("act", "grass")
VIEW = a_view(a_plan([SESSION]))


def run(answer: bytes, view: RunView = VIEW, now: float | None = None) -> RunStatus:
    return classify(view, fold(History(), parse_snapshot(answer)), now)


def only(*seen: Seen, now: float | None = None) -> SessionStatus:
    return run(an_answer(*seen), now=now).sessions[0]


def test_without_an_attempt_a_session_is_queued() -> None:
    session = only()
    assert (session.life, session.outcome, session.attempt, session.done) == (Life.QUEUED, None, 0, 0)
    assert not session.alive


def test_without_a_begin_it_is_starting() -> None:
    session = only(Seen("grass_act", started=None, life="starting", claimed=False, log=None))
    assert (session.life, session.attempt, session.started) == (Life.STARTING, 1, None)


@pytest.mark.parametrize(
    ("told", "life", "note"),
    [("starting", Life.STARTING, ""), ("lost", Life.ENDED, "its supervisor died before it began")],
)
def test_an_attempt_that_was_claimed_and_has_nothing_alive_is_not_starting_any_more(
    told: str, life: Life, note: str
) -> None:
    session = only(Seen("grass_act", started=None, life=told, log=None))
    assert (session.life, session.note) == (life, note)
    assert session.outcome is (Outcome.LOST if life is Life.ENDED else None)


def test_with_a_living_supervisor_it_is_running() -> None:
    session = only(Seen("grass_act", counts=(62, 55), log=b"episode 61\n", changed=NOW - 14))
    assert (session.life, session.done, session.planned, session.successes) == (Life.RUNNING, 62, 100, 55)
    assert (session.idle, session.seconds, session.last_line) == (14, 100, "episode 61")


@pytest.mark.parametrize(
    ("written", "held"), [("", ()), ("3", (3,)), ("0,1,10", (0, 1, 10)), ("\x1b[31m", ()), ("0,-1,x,9999999999", (0,))]
)
def test_it_is_known_which_gpus_a_session_was_granted(written: str, held: tuple[int, ...]) -> None:
    assert only(Seen("grass_act", gpus=written)).gpus == held
    assert only(Seen("grass_act", gpus=written).ended()).gpus == held


def test_the_window_of_a_session_is_that_of_its_latest_attempt() -> None:
    first = Seen("grass_act", 1, address="grass_act_ab12", gpus="1")
    second = Seen("grass_act", 2, address="grass_act_ab12_a2", gpus="2")
    session = only(first.ended(completeness="none"), second)
    assert (session.window, session.gpus) == ("grass_act_ab12_a2", (2,))
    assert only(Seen("grass_act", started=None)).window == ""


def test_a_run_that_wrote_no_log_yet_is_idle_since_its_start() -> None:
    assert only(Seen("grass_act", log=None)).idle == 100


def test_with_the_command_alone_it_is_orphaned() -> None:
    assert only(Seen("grass_act", life="orphaned")).life is Life.ORPHANED


def test_with_nothing_alive_and_no_end_it_is_lost() -> None:
    session = only(Seen("grass_act", life="lost"))
    assert (session.life, session.outcome) == (Life.ENDED, Outcome.LOST)
    assert session.note == "nobody saw it end"
    assert session.idle is None


def test_with_an_end_the_outcome_follows_from_completeness_and_cause() -> None:
    session = only(Seen("grass_act").ended(records=100, successes=91, ended=NOW - 40))
    assert (session.life, session.outcome, session.done, session.successes) == (
        Life.ENDED,
        Outcome.SUCCEEDED,
        100,
        91,
    )
    assert (session.seconds, session.note) == (60, "")


def test_the_latest_attempt_counts() -> None:
    session = only(Seen("grass_act").ended("lost", "partial", records=40), Seen("grass_act", 2, counts=(3, 1)))
    assert (session.life, session.attempt, session.done, session.successes) == (Life.RUNNING, 2, 3, 1)


def test_an_attempt_that_goes_on_adds_to_what_was_done_before_it() -> None:
    session = only(
        Seen("grass_act").ended("lost", "partial", records=99, successes=99),
        Seen("grass_act", 2).ended("lost", "partial", records=40, successes=30),
        Seen("grass_act", 3, first=40, counts=(3, 1)),
    )
    assert (session.done, session.successes) == (43, 31)


def test_a_program_without_records_tells_no_progress() -> None:
    view = a_view(a_plan([a_session("act", "grass", files=())]))
    status = run(an_answer(Seen("grass_act")), view)
    assert (status.sessions[0].done, status.sessions[0].successes) == (None, None)
    assert (status.done, status.planned) == (0, 0)


def test_between_two_looks_only_what_grows_by_itself_grows() -> None:
    seen = Seen("grass_act", counts=(50, 50), changed=NOW - 5)
    then, later = only(seen), only(seen, now=NOW + 30)
    assert (then.idle, later.idle) == (5, 35)
    assert (then.seconds, later.seconds) == (100, 130)
    assert replace(later, idle=then.idle, seconds=then.seconds) == then


def test_a_clock_that_went_back_gives_no_negative_times() -> None:
    session = only(Seen("grass_act", started=NOW + 50, changed=NOW + 60))
    assert (session.idle, session.seconds) == (0, 0)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"cause": "exited", "code": 0, "completeness": "complete"}, ""),
        ({"cause": "exited", "code": 3, "completeness": "complete"}, "exit code 3 after complete results"),
        (
            {"cause": "signal", "code": 139, "signal": 11, "completeness": "complete"},
            "segmentation fault after complete results",
        ),
        ({"cause": "stopped", "completeness": "complete"}, "stopped after complete results"),
        ({"cause": "exited", "code": 3, "completeness": "none"}, "exit code 3"),
        ({"cause": "signal", "code": 137, "signal": 9, "completeness": "partial"}, "killed"),
        ({"cause": "signal", "signal": 35, "completeness": "none"}, "signal 35"),
        ({"cause": "exited", "code": 0, "completeness": "none"}, "exit code 0, but no results"),
        (
            {"cause": "exited", "code": 0, "completeness": "partial", "records": 60},
            "exit code 0 after 60 of 100 episodes",
        ),
        (
            {"cause": "exited", "code": 0, "completeness": "partial", "records": 100, "verdicts": 0},
            "exit code 0, but no verdict in any of its records",
        ),
        (
            {"cause": "launch_failed", "completeness": "none", "note": "setup failed: no conda"},
            "setup failed: no conda",
        ),
        ({"cause": "launch_failed", "completeness": "none"}, "the command never ran"),
        ({"cause": "stopped", "completeness": "partial", "note": "by alice"}, "by alice"),
        ({"cause": "stopped", "completeness": "none"}, "stopped"),
        ({"cause": "lost", "completeness": "none"}, "nobody saw it end"),
        (
            {"cause": "lost", "completeness": "none", "note": "the host was restarted"},
            "nobody saw it end: the host was restarted",
        ),
        ({"cause": "eaten_by_bears", "completeness": "none"}, "ended for an unknown reason"),
        ({"cause": "launch_failed", "completeness": "none", "note": "\x1b[31mred\x1b[0m\u202e"}, "red"),
    ],
)
def test_how_it_ended_is_told_where_the_outcome_does_not(fields: dict[str, object], words: str) -> None:
    assert note(End.parse(record(**fields)), SESSION) == words


def test_after_is_no_combo() -> None:
    view = a_view(a_plan([SESSION], after=True))
    status = run(an_answer(Seen("grass_act").ended(records=100), Seen("after", log=b"plotting\n")), view)
    assert [session.name for session in status.sessions] == ["grass_act"]
    assert status.after is not None
    assert (status.after.life, status.after.last_line) == (Life.RUNNING, "plotting")
    assert status.counts() == {"succeeded": 1}


def test_a_plan_without_after_shows_none() -> None:
    assert run(an_answer()).after is None


ENDED = Seen("grass_act").ended(records=100, ended=NOW - 30)


@pytest.mark.parametrize(
    ("answer", "finished"),
    [
        (an_answer(ENDED), False),
        (an_answer(ENDED, done={"at": 1}), True),
        (an_answer(ENDED, done={"at": 1}, dispatcher=None), True),
        (an_answer(Seen("grass_act"), done={"at": 1}), False),
        (an_answer(dispatcher=None), False),
        (an_answer(stopped=True, dispatcher=None), True),
        (an_answer(Seen("grass_act"), stopped=True), False),
        (an_answer(Seen("grass_act", life="orphaned"), stopped=True), False),
    ],
)
def test_a_run_has_finished_when_it_is_done_or_stopped_and_nothing_lives(answer: bytes, finished: bool) -> None:
    assert run(answer).finished is finished


def test_a_finished_run_took_from_its_first_start_to_its_last_end() -> None:
    status = run(an_answer(ENDED, done={"at": 1}), now=NOW + 500)
    assert (status.started, status.seconds, status.expected) == (NOW - 100, 70, None)


def test_a_dispatcher_that_is_gone_comes_with_the_way_back() -> None:
    gone = run(an_answer(Seen("grass_act"), dispatcher=None))
    assert gone.hint == f"the dispatcher is gone, nothing new starts: `combo resume {gone.run}` goes on"
    never = run(an_answer(dispatcher=None))
    said = f"nothing has started, and no dispatcher is there to start it: `combo resume {never.run}` goes on"
    assert never.hint == said


def test_a_stopped_run_with_work_left_comes_with_the_way_back() -> None:
    cancelled = an_answer(Seen("grass_act").ended("stopped", "partial"), stopped=True, dispatcher=None)
    for answer in (cancelled, an_answer(stopped=True, dispatcher=None)):
        assert run(answer).hint == f"stopped with 1 of 1 session left: `combo resume {VIEW.id}` goes on"


def test_a_run_whose_stop_was_interrupted_comes_with_the_command_that_ends_the_rest() -> None:
    status = run(an_answer(Seen("grass_act"), stopped=True, dispatcher=None))
    assert status.hint == f"stopped: nothing new starts; `combo stop {VIEW.id}` ends what still runs"


@pytest.mark.parametrize(
    "answer",
    [
        an_answer(),
        an_answer(ENDED, done={}, dispatcher=None),
    ],
)
def test_a_run_that_goes_its_way_needs_no_hint(answer: bytes) -> None:
    assert run(answer).hint == ""


def test_before_the_first_answer_everything_is_queued_and_nothing_is_claimed() -> None:
    view, _ = a_busy_run()
    status = classify(view, History())
    assert {session.life for session in status.sessions} == {Life.QUEUED}
    assert (status.now, status.seconds, status.expected, status.finished) == (None, None, None, False)


def test_counts_go_by_outcome_once_it_is_there() -> None:
    view, answer = a_busy_run()
    assert run(answer, view).counts() == {
        "queued": 1,
        "running": 2,
        "orphaned": 1,
        "succeeded": 2,
        "partial": 1,
        "failed": 1,
    }


def a_chain(*records: int, cause: str = "exited", **fields: object) -> list[Seen]:
    """Attempts that go on where the one before them ended, and end with code 1."""
    firsts = [sum(records[:number]) for number in range(len(records))]
    words = ["partial" if count else "none" for count in records]
    return [
        Seen("grass_act", number, first=first).ended(cause, word, code=1, records=count, successes=count, **fields)
        for number, (first, word, count) in enumerate(zip(firsts, words, records, strict=True), 1)
    ]


def test_a_session_is_judged_by_all_that_its_attempts_have_left() -> None:
    session = only(*a_chain(2, 1, 0))
    assert (session.outcome, session.done, session.note) == (Outcome.PARTIAL, 3, "exit code 1")
    assert only(*a_chain(0, 0)).outcome is Outcome.FAILED
    assert only(*a_chain(2, 0, cause="stopped")).outcome is Outcome.CANCELLED


def test_a_start_from_the_beginning_that_leaves_less_takes_nothing_away() -> None:
    again = Seen("grass_act", 2).ended("exited", "none", code=1, records=0)
    session = only(Seen("grass_act").ended("exited", "partial", code=1, records=40, successes=9), again)
    assert (session.outcome, session.done, session.successes) == (Outcome.PARTIAL, 40, 9)
    session = only(Seen("grass_act").ended(records=100, successes=91), again)
    assert (session.outcome, session.done, session.failure) == (Outcome.SUCCEEDED, 100, None)
    assert session.note == "exit code 1 after complete results"


ROUGH = "all 10 rows say policy 'rough', this session is 'act'"


def test_why_rows_do_not_count_stands_wherever_the_session_is_shown() -> None:
    running = Seen("grass_act", why=ROUGH, log=b"[10/100]")
    ended = Seen("grass_act").ended("exited", "none", code=0, rows=10, verdicts=0, why=ROUGH)
    for seen in (running, ended):
        status = run(an_answer(seen))
        assert (status.sessions[0].done, status.sessions[0].successes, status.sessions[0].recorded) == (0, 0, 0)
        assert ROUGH in remark(status.sessions[0])
        assert document(status)["sessions"][0]["uncounted"] == ROUGH
    assert ROUGH in "\n".join(changes(None, status))


def test_records_without_a_verdict_are_done_and_no_success() -> None:
    session = only(Seen("grass_act").ended("exited", "partial", code=0, records=100, verdicts=0))
    assert (session.outcome, session.done, session.recorded, session.successes) == (Outcome.PARTIAL, 100, 0, 0)


def test_attempts_are_merged_as_the_report_merges_them() -> None:
    first, second = marked({0: True, 1: None, 2: False}, (0, 100)), marked({1: True, 2: True}, (0, 100))
    session = only(
        Seen("grass_act").ended("exited", "partial", code=1, records=3, verdicts=2, successes=1, marks=first),
        Seen("grass_act", 2).ended("exited", "partial", code=1, records=2, verdicts=2, successes=2, marks=second),
    )
    assert (session.done, session.recorded, session.successes) == (3, 3, 2)


def test_an_episode_that_two_sessions_are_for_is_planned_and_done_once() -> None:
    gap = replace(a_session("act", "grass", 4), name="grass_act_e2-5", first=2)
    view = a_view(a_plan([SESSION, gap, a_session("act", "maze", 10)]))
    both = [Seen("grass_act").ended(records=100, successes=1), Seen(gap.name, first=2).ended(records=4, successes=4)]
    status = run(an_answer(*both), view)
    assert (status.done, status.planned) == (100, 110)
    status = run(an_answer(both[1]), view)
    assert (status.done, status.planned) == (4, 110)


def test_why_rows_do_not_count_is_told_while_it_runs() -> None:
    why = "all 10 rows say policy 'rough', this session is 'act'"
    session = only(Seen("grass_act", why=why))
    assert (session.life, session.recorded, session.uncounted) == (Life.RUNNING, 0, why)


def test_what_can_not_be_counted_while_it_runs_is_unknown_and_not_none() -> None:
    session = only(Seen("grass_act", countable=False, why="more than 2000 result files"))
    assert (session.recorded, session.successes, session.uncounted) == (None, None, "more than 2000 result files")
