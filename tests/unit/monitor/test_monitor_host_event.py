"""When sessions that are gone are told as one event of the host, and in which words."""

from __future__ import annotations

import io
from dataclasses import replace
from datetime import UTC

from monitor_stage import BOOT, NOW, Seen, a_plan, a_session, a_view, an_answer
from rich.console import Console

from comborun.monitor.answer import parse_snapshot
from comborun.monitor.changes import changes
from comborun.monitor.classify import classify
from comborun.monitor.document import document
from comborun.monitor.observe import History, fold
from comborun.monitor.status import HostEvent, RunStatus
from comborun.monitor.table import Look, render

NAMES = ("grass", "stairs", "maze", "field")
VIEW = a_view(a_plan([a_session("act", name) for name in NAMES]))
OTHER = b"6f1c0c5e-0000-4000-8000-000000000002"


def seen(answer: bytes) -> RunStatus:
    return classify(VIEW, fold(History(), parse_snapshot(answer)))


def restarted(answer: bytes) -> bytes:
    """The same answer from a host that has booted since: the first boot id is the probe's own."""
    return answer.replace(BOOT.encode(), OTHER, 1)


def gone(name: str, changed: float = NOW - 60, attempt: int = 1) -> Seen:
    return Seen(f"{name}_act", attempt, life="lost", changed=changed)


def after_a_restart() -> RunStatus:
    ended = Seen("grass_act").ended(records=100, successes=91)
    return seen(restarted(an_answer(ended, gone("stairs", NOW - 75), gone("maze"), dispatcher=None)))


def test_sessions_of_another_boot_are_one_event() -> None:
    event = after_a_restart().host_event
    assert event == HostEvent("restarted", NOW - 60, ("stairs_act", "maze_act"))


def test_one_session_of_another_boot_is_an_event_of_the_host_too() -> None:
    assert seen(restarted(an_answer(gone("maze")))).host_event == HostEvent("restarted", NOW - 60, ("maze_act",))


def test_a_supervisor_that_died_before_it_began_belongs_to_the_restart() -> None:
    early = Seen("field_act", started=None, life="lost", log=None)
    event = seen(restarted(an_answer(gone("maze"), early, dispatcher=None))).host_event
    assert event is not None
    assert event.sessions == ("maze_act", "field_act")


def test_the_next_dispatcher_writing_the_ends_changes_nothing_until_they_start_anew() -> None:
    buried = [Seen(f"{name}_act").ended("lost", "partial", code="", records=7) for name in ("stairs", "maze")]
    event = seen(restarted(an_answer(*buried))).host_event
    assert event is not None
    assert event.sessions == ("stairs_act", "maze_act")
    half = seen(restarted(an_answer(*buried, Seen("stairs_act", 2))))
    assert half.host_event is not None
    assert half.host_event.sessions == ("maze_act",)


def test_all_that_vanish_under_one_boot_with_their_dispatcher_are_one_event() -> None:
    status = seen(an_answer(gone("grass"), gone("stairs"), gone("maze"), dispatcher=None))
    assert status.host_event == HostEvent("vanished", NOW - 60, ("grass_act", "stairs_act", "maze_act"))


def test_what_vanishes_while_others_live_is_no_event_of_the_host() -> None:
    assert seen(an_answer(gone("grass"), gone("stairs"), Seen("maze_act"), dispatcher=None)).host_event is None
    assert seen(an_answer(gone("grass"), gone("stairs"))).host_event is None, "the dispatcher lives"
    assert seen(an_answer(gone("grass"), dispatcher=None)).host_event is None, "one alone"


def test_an_event_takes_the_place_of_a_note_for_each_session() -> None:
    assert {one.note for one in after_a_restart().sessions} == {""}
    alone = seen(an_answer(gone("grass"), Seen("maze_act")))
    assert alone.sessions[0].note == "nobody saw it end"


def test_a_log_tells_the_event_in_one_line_and_once() -> None:
    before = seen(an_answer(Seen("grass_act").ended(records=100, successes=91), Seen("stairs_act"), Seen("maze_act")))
    after = after_a_restart()
    lines = changes(before, after, UTC)
    assert lines[0].endswith("! gpu-box was started again after 10:29:00: 2 sessions that ran then are lost")
    assert not [line for line in lines if "? " in line]
    assert changes(after, replace(after, now=NOW + 60), UTC) == []


def test_a_log_tells_those_that_start_anew_one_by_one() -> None:
    after = after_a_restart()
    running = seen(restarted(an_answer(gone("stairs"), gone("maze"), Seen("maze_act", 2))))
    lines = [line.partition("  ")[2] for line in changes(after, running, UTC)]
    assert "● act in maze: running, attempt 2" in lines
    assert not [line for line in lines if "started again" in line]


def test_the_table_tells_it_above_the_rows() -> None:
    file = io.StringIO()
    Console(file=file, width=100).print(render(after_a_restart(), Look(100, None, UTC)))
    text = file.getvalue()
    told = "! gpu-box was started again after 10:29:00: 2 sessions that ran then are lost"
    assert text.count("was started again") == 1
    assert text.index(told) < text.index("policy")
    assert "nobody saw" not in text


def test_the_words_fit_one_session_and_a_host_that_killed_them() -> None:
    one = changes(None, seen(restarted(an_answer(gone("maze"), dispatcher=None))), UTC)
    assert any("started again after 10:29:00: 1 session that ran then is lost" in line for line in one)
    all_gone = changes(None, seen(an_answer(gone("grass"), gone("maze"), dispatcher=None)), UTC)
    words = "! all 2 sessions that ran vanished together after 10:29:00: were the user's processes on gpu-box killed?"
    assert any(line.endswith(words) for line in all_gone)


def test_programs_get_it_as_a_field() -> None:
    event = document(after_a_restart())["host_event"]
    assert event == {"kind": "restarted", "last_sign": NOW - 60, "sessions": ("stairs_act", "maze_act")}
    assert document(seen(an_answer(Seen("maze_act"))))["host_event"] is None
