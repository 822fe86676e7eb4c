"""The loop, on a clock that only tests move."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from box import until
from monitor_stage import (
    NOW,
    HandClock,
    Seen,
    StagedHost,
    a_plan,
    a_session,
    a_view,
    a_wait,
    an_answer,
    plan_answer,
    status_of,
)

from comborun.errors import HostError, UserError
from comborun.monitor.observe import RunView
from comborun.monitor.screen import StatusScreen
from comborun.monitor.status import Link, RunStatus
from comborun.monitor.watch import Clock, Settings, Source, due, once, until_answered
from comborun.monitor.watcher import Watcher, watch
from comborun.remote import program
from comborun.remote.transport import Completed
from comborun.rules.facts import Fact
from comborun.rules.room.waits import Wait
from comborun.rules.vocabulary import Life
from comborun.words import say

VIEW = a_view(a_plan([a_session("act", "grass")]))
RUNNING = Seen("grass_act", counts=(50, 40), log=b"episode 49\n", changed=NOW - 3)
GOES_ON = an_answer(RUNNING)
HAS_ENDED = an_answer(RUNNING.ended(records=100, successes=81), now=NOW + 60, done={"at": 1})
CUT = HostError("gpu-box does not answer\nconnect timed out", "is it up?")


@dataclass
class Pictures(StatusScreen):
    """A screen that keeps what it was shown."""

    seen: list[RunStatus] = field(default_factory=list)

    def show(self, status: RunStatus) -> None:
        self.seen.append(status)


def play(
    *answers: bytes | Completed | BaseException,
    view: RunView = VIEW,
    interval: float = 60.0,
    heed: Callable[[RunStatus], str] | None = None,
) -> tuple[RunStatus, Pictures, HandClock]:
    screen, clock, settings = Pictures(), HandClock(), Settings(interval, chance=lambda: 1.0)
    return watch(Source(StagedHost(answers), view), screen, clock, settings, heed), screen, clock


def test_the_end_of_a_run_on_this_machine_is_seen_at_once(tmp_path: Path) -> None:
    class Ending(HandClock):
        def sleep(self, seconds: float) -> None:
            super().sleep(seconds)
            if self.passed > 5:
                (tmp_path / "dispatch/done").touch()

    (tmp_path / "dispatch").mkdir()
    view, clock = VIEW._replace(directory=str(tmp_path)), Ending()
    watch(Source(StagedHost([GOES_ON, HAS_ENDED], "local"), view), Pictures(), clock, Settings(60))
    assert 5 < clock.passed < 6


def test_it_asks_only_for_what_it_does_not_know() -> None:
    plan = a_plan([a_session("act", "grass"), a_session("act", "stairs")])
    ended = RUNNING.ended(records=100)
    host = StagedHost([an_answer(ended), an_answer(done={"at": 1})])
    watch(Source(host, a_view(plan)), Pictures(), HandClock(), Settings(60))
    assert [known for _, _, known, _ in host.asked] == ["0,0", "1,0"]


def test_a_lost_link_says_since_when() -> None:
    _, screen, clock = play(GOES_ON, CUT, CUT, HAS_ENDED)
    up, down, still, _ = screen.seen
    assert (down.link.reachable, down.link.since, down.link.last_seen) == (False, clock.wall + 60, 60)
    assert down.link.complaint == "gpu-box does not answer"
    assert (still.link.since, still.link.last_seen, still.link.failures) == (clock.wall + 60, 62, 2)
    assert (down.now, down.seconds, down.finished) == (up.now, up.seconds, False)
    assert [shown.link.lasting for shown in (down, still)] == [0, 2]


def test_views_see_an_age_grow_between_two_looks() -> None:
    clock, source = HandClock(), Source(StagedHost([GOES_ON, CUT, HAS_ENDED]), VIEW)
    watcher = Watcher(source, clock, Settings(4.0, chance=lambda: 1.0))
    ages = []

    def look() -> None:
        for _ in range(2):
            ages.append(watcher.link().last_seen)
            clock.passed += 1

    watcher.subscribe(look)
    watcher.run()
    assert ages == [0, 1, 6, 7, 0, 1, 2, 3]


def test_a_view_in_another_thread_waits_for_the_next_look_and_may_want_it_at_once() -> None:
    host = StagedHost([GOES_ON, GOES_ON, HAS_ENDED])
    watcher = Watcher(Source(host, VIEW), Clock(), Settings(600))
    watcher.start()
    first = watcher.wait(after=0, seconds=20)
    assert (first.number, first.status.sessions[0].life) == (1, Life.RUNNING)
    assert watcher.order(lambda source: source.view.id) == VIEW.id
    second = watcher.wait(after=1, seconds=20)
    assert second.number == 2
    watcher.refresh()
    until(lambda: watcher.look.over, "the watcher sees the end")
    assert watcher.look.status.finished
    assert len(host.asked) == 3


def test_a_connection_that_is_gone_is_noticed_before_the_next_look_is_due() -> None:
    class Cut(StagedHost):
        @property
        def lost(self) -> bool:
            return clock.passed >= 10

    clock, shown = HandClock(), []
    watcher = Watcher(Source(Cut([GOES_ON, CUT, HAS_ENDED]), VIEW), clock, Settings(60, chance=lambda: 1.0))
    watcher.subscribe(lambda: shown.append((clock.passed, watcher.link().reachable)))
    watcher.run()
    assert shown[1] == (10, False)


def test_a_look_that_waits_for_its_answer_says_so_before_it_fails() -> None:
    class Slow(StagedHost):
        def run(self, *words: Any, **how: Any) -> Completed:
            if self.asked:
                until(lambda: max(told, default=0) >= 3, "it says that no answer comes")
                silent.append(watcher.link())
            return super().run(*words, **how)

    silent: list[Link] = []
    told: list[float] = []
    watcher = Watcher(Source(Slow([GOES_ON, HAS_ENDED]), VIEW), Clock(), Settings(0.2))
    watcher.subscribe(lambda: told.append(watcher.link().silent))
    watcher.run()
    assert silent[0].reachable
    assert watcher.link().silent == 0


LAUNCHED = an_answer(dispatcher=4242)
STARTING = an_answer(Seen("grass_act", started=None, life="starting", log=None))
GATHERING = an_answer(Seen("grass_act", counts=(100, 81)), now=NOW + 50)
AFTERWARDS = an_answer(RUNNING.ended(records=100, successes=81), Seen("after", log=b"plot 1\n"), now=NOW + 55)
ALL_DONE = an_answer(RUNNING.ended(records=100), Seen("after").ended(), now=NOW + 60, done={"at": 1})
PHASES = {"launched": LAUNCHED, "starting": STARTING, "running": GOES_ON, "gathering": GATHERING, "after": AFTERWARDS}
OUTAGES = {
    "the host is silent": CUT,
    "the answer is cut off": GOES_ON[: len(GOES_ON) // 2],
    "something else answers": b"Connection refused by gateway\n",
    "the probe fails": Completed(255, b"", b"bash: fork: Resource temporarily unavailable\n"),
}


@pytest.mark.parametrize("outage", OUTAGES)
@pytest.mark.parametrize("phase", PHASES)
def test_an_outage_in_any_phase_changes_no_session_and_is_over_by_itself(phase: str, outage: str) -> None:
    away = OUTAGES[outage]
    view = a_view(a_plan([a_session("act", "grass")], after=True))
    status, screen, _ = play(PHASES[phase], away, away, away, PHASES[phase], ALL_DONE, view=view)
    before, *during, after, end = screen.seen
    assert [shown.link.reachable for shown in screen.seen] == [True, False, False, False, True, True]
    for shown in during:
        assert (shown.sessions, shown.after, shown.done) == (before.sessions, before.after, before.done)
        assert shown.link.since == during[0].link.since
    assert (after.sessions, after.link.reachable) == (before.sessions, True)
    assert end == status
    assert status.finished


def test_it_looks_often_just_after_a_launch_and_when_an_end_is_near() -> None:
    begun = Seen("grass_act", started=NOW, counts=(0, 0))
    looks = [an_answer(replace(begun, counts=(4 * passed, 0)), now=NOW + passed) for passed in (0, 2, 4, 8, 16, 24, 25)]
    end = an_answer(begun.ended(records=100), now=NOW + 27, done={"at": 1})
    _, screen, clock = play(*looks, end)
    assert clock.passed == 2 + 2 + 4 + 8 + 9 + 2 + 2
    assert len(screen.seen) == 8


def test_it_looks_often_just_after_a_resume_of_an_old_run() -> None:
    stopped = Seen("grass_act", started=NOW - 7200).ended("stopped", "none")
    again = Seen("grass_act", attempt=2, started=NOW - 1)
    _, _, clock = play(an_answer(stopped, again), an_answer(stopped, again.ended(records=100), done={"at": 1}))
    assert clock.passed == 2


def test_it_recovers_by_itself_and_shows_the_plan_until_the_host_was_seen() -> None:
    status, screen, clock = play(*[CUT] * 9, GOES_ON, HAS_ENDED)
    assert status.finished
    assert screen.seen[-2].link == Link(last_seen=0)
    assert clock.passed == 2 + 4 + 8 + 16 + 32 + 60 * 5
    assert screen.seen[0].sessions[0].life is Life.QUEUED
    assert (screen.seen[0].now, screen.seen[0].link.last_seen) == (None, None)


def waited_for(*outcomes: str | BaseException, clock: HandClock) -> tuple[str, list[Link]]:
    """What comes of an act with these outcomes, one after the other, and what was told of the link."""
    left, told = iter(outcomes), []

    def act() -> str:
        outcome = next(left)
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    return until_answered(act, clock, Settings(60, lambda: 1.0), told.append), told


def test_what_follows_the_end_waits_for_a_host_that_went_away_as_the_looks_do() -> None:
    clock = HandClock()
    fetched, told = waited_for(CUT, CUT, CUT, "fetched", clock=clock)
    assert fetched == "fetched"
    assert clock.passed == 2 + 4 + 8
    assert [link.failures for link in told] == [1, 2, 3]
    assert {link.since for link in told} == {clock.wall}
    assert told[0].complaint == "gpu-box does not answer"
    assert waited_for("fetched", clock=clock) == ("fetched", [])


def test_ctrl_c_and_what_is_no_matter_of_the_link_end_the_waiting_and_the_loop() -> None:
    with pytest.raises(KeyboardInterrupt):
        waited_for(CUT, "fetched", clock=HandClock(interrupt_at=1.0))
    with pytest.raises(UserError, match="disk is full"):
        waited_for(UserError("the disk is full"), clock=HandClock())
    with pytest.raises(UserError, match="version"):
        play(GOES_ON, GOES_ON.replace(b"probe 3", b"probe 9"))


def test_one_look_is_one_round_trip_and_fails_when_the_host_does() -> None:
    host = StagedHost([GOES_ON])
    assert once(Source(host, VIEW)).sessions[0].done == 50
    assert len(host.asked) == 1
    for away in (CUT, OUTAGES["the answer is cut off"], OUTAGES["the probe fails"]):
        with pytest.raises(HostError) as refused:
            once(Source(StagedHost([away]), VIEW))
        assert refused.value.exit_code == 3


def test_a_newer_plan_is_read_as_soon_as_a_look_tells_of_it() -> None:
    wider = a_plan([a_session("act", "grass"), a_session("act", "stairs")])
    amended = an_answer(RUNNING, host=({"plan": 2},))
    newest = plan_answer(wider.to_json().encode(), 2)
    _, screen, _ = play(GOES_ON, amended, newest, an_answer(done={"at": 1}, host=({"plan": 2},)))
    assert [len(shown.sessions) for shown in screen.seen] == [1, 2, 2]


def test_a_plan_that_cannot_be_fetched_just_now_is_fetched_at_the_next_look() -> None:
    amended = an_answer(RUNNING, host=({"plan": 2},))
    newest = plan_answer(VIEW.plan.to_json().encode(), 2)
    status, screen, _ = play(amended, CUT, amended, newest, HAS_ENDED)
    assert status.finished
    assert [shown.link.reachable for shown in screen.seen] == [False, True, True]


def test_what_can_not_be_decided_is_shown_at_once_and_while_the_host_is_away() -> None:
    said = iter(["", "stop_early can't decide", ""])
    _, screen, _ = play(GOES_ON, GOES_ON, CUT, HAS_ENDED, heed=lambda _: next(said))
    assert [status.undecided for status in screen.seen] == ["", "", *["stop_early can't decide"] * 3, ""]


def test_a_host_that_went_away_while_heed_asked_it_is_looked_at_at_once() -> None:
    def lost(_: RunStatus) -> str:
        raise HostError("gpubox did not answer in time")

    _, screen, clock = play(GOES_ON, CUT, HAS_ENDED, heed=lost)
    assert [shown.link.reachable for shown in screen.seen] == [True, False, True]
    assert clock.passed == 2, "it waits a little after it is known, and not before"


def test_what_heed_can_not_ask_of_a_host_that_is_there_does_not_make_the_looks_a_rush() -> None:
    def refused(_: RunStatus) -> str:
        raise HostError("gpubox can't write")

    _, screen, clock = play(*[GOES_ON] * 4, HAS_ENDED, heed=refused)
    assert len(screen.seen) == 5
    assert clock.passed == 120


def test_a_retry_that_is_about_to_start_is_due_and_one_that_is_late_is_not() -> None:
    failed = Seen("grass_act").ended("exited", "none", code=1)
    for until_then, expected in ((40, 40), (-1, math.inf)):
        wait = a_wait("grass_act", Fact(Wait.RETRY_AFTER), NOW + until_then)
        assert due(status_of(VIEW, an_answer(failed, host=(wait,)))) == expected


def test_a_host_that_answers_that_the_folder_is_gone_is_not_called_unreachable() -> None:
    _, screen, _ = play(GOES_ON, Completed(program.NO_RUN, b"", b""), CUT, HAS_ENDED)
    troubles = [shown.link.trouble for shown in screen.seen if not shown.link.reachable]
    assert list(dict.fromkeys(troubles)) == ["run folder gone", "unreachable"]


GONE = Completed(program.NO_RUN, b"", b"")


def test_a_folder_that_comes_back_is_seen_soon_and_it_is_said_what_happened_meanwhile() -> None:
    failed = an_answer(RUNNING.ended("exited", "none", code=1), now=NOW + 60)
    _, screen, _ = play(GOES_ON, *[GONE] * 9, failed, HAS_ENDED)
    away = [shown.link.last_seen for shown in screen.seen if shown.link.gone]
    assert max(later - earlier for earlier, later in pairwise(away)) == 5, "however long it has been gone"
    (back,) = screen.seen[-2].back
    gone_s = 2 + 4 + 7 * 5
    assert (back.fields["gone"], back.fields["seconds"], back.fields["changes"]) == (True, gone_s, {"failed": 1})
    assert say(back) == "the run's folder on gpu-box was gone for 41 s, until 11:55:01; meanwhile: 1 failed"
    assert not screen.seen[0].back


def test_what_happened_while_a_host_did_not_answer_is_said_for_ten_minutes() -> None:
    _, screen, _ = play(GOES_ON, CUT, *[GOES_ON] * 12, HAS_ENDED)
    said = [[say(one) for one in shown.back] for shown in screen.seen]
    assert said[2] == ["gpu-box did not answer for 2 s, until 11:54:22; meanwhile: nothing changed"]
    assert said[11] == said[2]
    assert said[-1] == []
