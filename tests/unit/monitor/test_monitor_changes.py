"""Plain lines for logs, the JSON document, and which screen shows what."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from monitor_stage import NOW, Seen, a_busy_run, a_host, a_plan, a_session, a_view, an_answer, status_of
from rich.console import Console

from comborun.monitor.document import to_json
from comborun.monitor.screen import JsonScreen, PlainScreen, StatusScreen, changes, show_once
from comborun.monitor.status import Link, RunStatus
from comborun.rules.endings.evidence import Evidence
from comborun.rules.facts import Fact
from comborun.rules.vocabulary import Life, Outcome
from comborun.text import GIB
from comborun.words import say

GOLDEN = Path(__file__).parents[2] / "golden" / "monitor"
VIEW = a_view(a_plan([a_session("act", "grass"), a_session("act", "stairs")], after=True))


def story() -> list[RunStatus]:
    """A run from its first look to its end."""
    grass, stairs = Seen("grass_act", counts=(4, 4)), Seen("stairs_act", started=NOW + 50)
    more = Seen("grass_act", counts=(57, 50))
    ended = grass.ended(records=100, successes=91, ended=NOW + 200)
    again = Seen("stairs_act", 2, started=NOW + 210, counts=(30, 2))
    looks = [
        an_answer(),
        an_answer(grass, now=NOW + 20),
        an_answer(grass, now=NOW + 40),
        an_answer(more, stairs, now=NOW + 60),
        an_answer(ended, stairs.ended("lost", "none", code="", records=0, ended=NOW + 190), now=NOW + 205),
        an_answer(again, now=NOW + 220, dispatcher=None),
        an_answer(
            again.ended("exited", "partial", code=1, records=60, successes=4, ended=NOW + 300, note="Traceback"),
            Seen("after", started=NOW + 310, log=b"plot 1\n"),
            now=NOW + 320,
        ),
        an_answer(
            Seen("after", started=NOW + 310).ended("exited", "complete", ended=NOW + 330),
            now=NOW + 340,
            done={"at": 1},
        ),
    ]
    return [status_of(VIEW, *looks[:count]) for count in range(1, len(looks) + 1)]


def told(statuses: list[RunStatus]) -> str:
    pairs = zip([None, *statuses], statuses, strict=False)
    return "".join(f"{line}\n" for before, after in pairs for line in changes(before, after))


def test_what_can_not_be_decided_is_a_line_when_that_is_found_out() -> None:
    status = story()[3]
    stuck = replace(status, undecided="stop_early can't decide a against b")
    (line,) = changes(status, stuck)
    assert line.endswith("  ! stop_early can't decide a against b")
    assert changes(stuck, stuck) == []


@pytest.mark.parametrize(
    ("last", "more"), [("comborun: setup line 1 failed: false", False), ("bye", True), ("", False)]
)
def test_a_last_line_that_is_the_cause_is_told_once(last: str, more: bool) -> None:
    status = story()[1]
    grass = next(one for one in status.sessions if one.life is Life.RUNNING)
    why = Fact("former_words", text="setup line 1 failed: false")
    failed = grass._replace(life=Life.ENDED, outcome=Outcome.FAILED, facts=(why,), last_line=last)
    (line,) = changes(replace(status, sessions=(grass,)), replace(status, sessions=(failed,)))
    assert "setup line 1 failed: false" in line
    assert (f"last line: {last}" in line) is more


def test_a_lost_link_is_told_once_and_once_when_it_is_back() -> None:
    up = story()[3]
    away = replace(up, link=Link(reachable=False, since=NOW + 3, last_seen=9, failures=1, complaint="timed out"))
    longer = replace(away, link=away.link._replace(failures=2, last_seen=19))
    lines = told([up, away, longer, up]).splitlines()[5:]
    assert [line.partition("  ")[2] for line in lines] == [
        "! unreachable since 10:30:03: timed out",
        "reachable again",
    ]


def test_the_document_says_how_a_server_ended_in_facts_and_in_words_also_in_those_of_a_former_version() -> None:
    why = Fact(Evidence.RAN_TOO_LONG, limit_s=3)
    ended = {"name": "vlm", "attempt": 1, "state": "ended", "cause": "timed_out"}
    told = ({**ended, "ending": [why.as_data()]}, {**ended, "why": "as it said"})
    shown = json.loads(to_json(status_of(*a_busy_run(({"servers": list(told)},)))))
    assert [(one["ending"], one["why"]) for one in shown["servers"]] == [
        ([why.as_data()], say(why)),
        ([], "as it said"),
    ]


def test_the_document_has_what_was_promised() -> None:
    server = {"name": "vlm", "attempt": 1, "state": "loading", "since": NOW - 180, "gpus": [0, 1], "port": 31337}
    host = (*a_host((42188, 81559, 97), (None, None, None)), {"servers": [server]})
    shown = json.loads(to_json(status_of(*a_busy_run(host))))
    assert shown["run"] == "walkers-20260729T101500Z-ab12"
    assert (shown["host"], shown["reachable"], shown["finished"]) == ("gpu-box", True, False)
    assert len(shown["sessions"]) == 8
    running = shown["sessions"][3]
    assert {
        "name": "stairs_pi0_5__flow_",
        "policy": "pi0.5 (flow)",
        "environment": "stairs",
        "state": "running",
        "outcome": None,
        "attempt": 1,
        "episodes_done": 62,
        "episodes_planned": 100,
        "successes": 55,
        "idle_seconds": 1.0,
        "last_line": "episode 61: success, 12.4 s",
    }.items() <= running.items()
    ended = shown["sessions"][1]
    assert (ended["state"], ended["outcome"], ended["idle_seconds"]) == ("ended", "succeeded", None)
    assert ended["note"] == "segmentation fault after complete results"
    assert shown["after"]["state"] == "queued"
    assert shown["servers"] == [
        {
            "name": "vlm",
            "state": "loading",
            "attempt": 1,
            "since": NOW - 180,
            "gpus": [0, 1],
            "port": 31337,
            "cause": None,
            "ending": [],
            "why": None,
            "waits": None,
            "fact": None,
        }
    ]
    assert (shown["load"], shown["cpus"]) == (41.3, 64)
    assert shown["memory"] == {"total": 252 * GIB, "free": 133 * GIB}
    unknown = dict.fromkeys(("used", "total", "utilization")) | dict.fromkeys(("uuid", "name", "driver", "bus"), "")
    assert shown["gpus"] == [
        {**unknown, "index": 0, "used": 42188, "total": 81559, "utilization": 97},
        {**unknown, "index": 1},
    ]


def test_the_document_acts_on_no_terminal() -> None:
    plan = a_plan([a_session("\x9b31m\u202eact", "gräss")])
    seen = Seen(plan.sessions[0].name, log="grün\n".encode())
    text = to_json(status_of(a_view(plan), an_answer(seen)))
    assert text.isascii()
    assert json.loads(text)["sessions"][0]["last_line"] == "grün"


def terminal(**fields: object) -> Console:
    settings = {"file": io.StringIO(), "width": 100, "height": 30, "force_terminal": True, "_environ": {}}
    return Console(**{**settings, **fields})  # type: ignore[arg-type]


def output(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def play(screen: StatusScreen) -> None:
    for status in story():
        screen.show(status)


def test_plain_lines_are_not_broken_and_hold_no_escape_sequences() -> None:
    console = terminal(force_terminal=False, width=20)
    play(PlainScreen(console))
    assert output(console) == (GOLDEN / "story-plain.txt").read_text()


def test_a_pipe_gets_whole_lines_unless_somebody_gives_a_size_as_watch_does(monkeypatch: pytest.MonkeyPatch) -> None:
    for given, width in ({}, 81), ({"COLUMNS": "60", "LINES": "20"}, 60):
        for name in ("COLUMNS", "LINES"):
            monkeypatch.delenv(name, raising=False)
        for name, value in given.items():
            monkeypatch.setenv(name, value)
        console = terminal(force_terminal=False, width=60)
        show_once(console, story()[3])
        longest = max(map(len, output(console).splitlines()))
        assert longest >= width if not given else longest <= width


def test_no_colour_keeps_the_table() -> None:
    console = terminal(no_color=True)
    show_once(console, story()[3])
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]", output(console))
    assert "● running" in output(console)


def test_in_json_a_look_that_still_waits_writes_nothing() -> None:
    written: list[str] = []
    screen, status = JsonScreen(written.append), status_of(a_view(a_plan([a_session("act", "maze")])), an_answer())
    screen.show(replace(status, link=Link(silent=5.0)))
    assert not written
    screen.show(status)
    assert [json.loads(line)["run"] for line in written] == [status.run]
