"""The loop, on a clock that only tests move."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from monitor_stage import NOW, HandClock, Seen, StagedHost, a_plan, a_session, a_view, an_answer

from comborun.errors import HostError, UserError
from comborun.state import Life
from monitor.status import Link, RunStatus
from monitor.watch import Settings, Source, SystemClock, once, watch

VIEW = a_view(a_plan([a_session("act", "grass")]))
RUNNING = Seen("grass_act", counts=(50, 40), log=b"episode 49\n", changed=NOW - 3)
GOES_ON = an_answer(RUNNING)
HAS_ENDED = an_answer(RUNNING.ended(records=100, successes=81), now=NOW + 60, done="at=1")
CUT = HostError("gpu-box does not answer\nconnect timed out", "is it up?")


@dataclass
class Pictures:
    """A screen that keeps what it was shown."""

    ticking: bool = False
    seen: list[RunStatus] = field(default_factory=list)
    closed: int = 0

    def show(self, status: RunStatus) -> None:
        assert not self.closed
        self.seen.append(status)

    def close(self) -> None:
        self.closed += 1


def play(
    *answers: bytes | BaseException, interval: float = 60.0, ticking: bool = False, clock: HandClock | None = None
) -> tuple[RunStatus, Pictures, HandClock]:
    screen, clock = Pictures(ticking), clock or HandClock()
    settings = Settings(interval, chance=lambda: 1.0)
    return watch(Source(StagedHost(answers), VIEW), screen, clock, settings), screen, clock


def test_it_looks_once_per_interval_until_all_has_ended() -> None:
    status, screen, clock = play(GOES_ON, GOES_ON, HAS_ENDED)
    assert status.finished
    assert [shown.finished for shown in screen.seen] == [False, False, True]
    assert clock.passed == 120
    assert screen.closed == 1


def test_it_asks_only_for_what_it_does_not_know() -> None:
    plan = a_plan([a_session("act", "grass"), a_session("act", "stairs")])
    ended = RUNNING.ended(records=100)
    host = StagedHost([an_answer(ended), an_answer(done="at=1")])
    watch(Source(host, a_view(plan)), Pictures(), HandClock(), Settings(60))
    assert [known for _, known, _ in host.asked] == ["0,0", "1,0"]


def test_what_follows_the_end_is_called_once_after_the_screen_was_closed() -> None:
    called: list[tuple[bool, int]] = []
    screen = Pictures()
    settings = Settings(60, lambda status: called.append((status.finished, screen.closed)))
    watch(Source(StagedHost([GOES_ON, HAS_ENDED]), VIEW), screen, HandClock(), settings)
    assert called == [(True, 1)]


def test_between_two_looks_time_is_shown_passing_without_asking_the_host() -> None:
    _, screen, clock = play(GOES_ON, HAS_ENDED, interval=4.0, ticking=True)
    assert [shown.sessions[0].idle for shown in screen.seen] == [3, 4, 5, 6, None]
    assert clock.passed == 4


def test_a_lost_link_changes_no_session_and_says_since_when() -> None:
    _, screen, clock = play(GOES_ON, CUT, CUT, HAS_ENDED)
    up, down, still, _ = screen.seen
    assert (down.link.reachable, down.link.since, down.link.last_seen) == (False, clock.wall + 60, 60)
    assert down.link.complaint == "gpu-box does not answer"
    assert (still.link.since, still.link.last_seen, still.link.failures) == (clock.wall + 60, 62, 2)
    assert down.sessions == still.sessions == up.sessions
    assert (down.now, down.seconds) == (up.now, up.seconds)
    assert not down.finished


def test_an_age_grows_while_the_host_is_away_and_idle_times_stand_still() -> None:
    _, screen, _ = play(GOES_ON, CUT, HAS_ENDED, interval=2.0, ticking=True)
    away = [shown for shown in screen.seen if not shown.link.reachable]
    assert [shown.link.last_seen for shown in away] == [2, 3]
    assert {shown.sessions[0].idle for shown in away} == {3}


def test_it_recovers_by_itself_and_never_ends_because_of_the_link() -> None:
    status, screen, clock = play(*[CUT] * 9, GOES_ON, HAS_ENDED)
    assert status.finished
    assert screen.seen[-2].link == Link(last_seen=0)
    assert clock.passed == 2 + 4 + 8 + 16 + 32 + 60 * 5


def test_a_host_that_was_never_seen_shows_the_plan() -> None:
    _, screen, _ = play(CUT, HAS_ENDED)
    assert screen.seen[0].sessions[0].life is Life.QUEUED
    assert (screen.seen[0].now, screen.seen[0].link.last_seen) == (None, None)


def test_ctrl_c_leaves_at_once_closes_the_screen_and_makes_no_report() -> None:
    screen, called = Pictures(), []
    host = StagedHost([GOES_ON])
    with pytest.raises(KeyboardInterrupt):
        watch(Source(host, VIEW), screen, HandClock(interrupt_at=1.0), Settings(60, called.append))
    assert (len(host.asked), screen.closed, called) == (1, 1, [])


def test_ctrl_c_during_a_look_closes_the_screen_too() -> None:
    with pytest.raises(KeyboardInterrupt):
        play(GOES_ON, KeyboardInterrupt())


def test_what_is_no_matter_of_the_link_ends_the_loop() -> None:
    with pytest.raises(UserError, match="version"):
        play(GOES_ON, GOES_ON.replace(b"probe 1", b"probe 9"))


def test_one_look_is_one_round_trip_and_fails_when_the_host_does() -> None:
    host = StagedHost([GOES_ON])
    assert once(Source(host, VIEW)).sessions[0].done == 50
    assert len(host.asked) == 1
    with pytest.raises(HostError, match="does not answer"):
        once(Source(StagedHost([CUT]), VIEW))


def test_the_systems_clock_goes_forward() -> None:
    clock = SystemClock()
    before = clock.elapsed()
    clock.sleep(0.001)
    assert clock.elapsed() > before
    assert clock.now() > NOW - 86400 * 365
