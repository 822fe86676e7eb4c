"""The status of a run on several hosts: each session once, and an end only when nothing is on its way."""

from __future__ import annotations

import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import monitor_stage as stage
import pytest
from monitor_stage import NOW, Seen

from comborun.answers.page import page_of
from comborun.monitor.classify import classify
from comborun.monitor.document import answer
from comborun.monitor.fullscreen import heading, pages
from comborun.monitor.fullscreen.fetching import Fetcher
from comborun.monitor.joint import PartStatus, as_last_seen, given_up, joined
from comborun.monitor.observe import History, fold
from comborun.monitor.rows import Choice, chosen
from comborun.monitor.screen import changes
from comborun.monitor.snapshot import Hold, Order, parse_snapshot
from comborun.monitor.status import Link, Outage, RunStatus
from comborun.monitor.table import box_lines
from comborun.monitor.view.feed import _trouble
from comborun.monitor.view.pages import Site, alerts, of_hosts, render
from comborun.monitor.watch import Look, Source
from comborun.remote.transport import Completed
from comborun.rules.deal import Deal, Era
from comborun.rules.events import Event, Kind
from comborun.rules.facts import Fact
from comborun.words import say

PLAN = stage.a_plan([stage.a_session("p", "maze", count=4), stage.a_session("q", "maze", count=4)])
DEAL = Deal(
    {
        "grid_run": "g",
        "box": "x",
        "number": [0, 0],
        "boxes": ["x", "y"],
        "of": {"maze_p": "x", "maze_q": "x"},
        "lost": {},
    }
)
MOVED = DEAL.moved([DEAL.move("maze_q", "y")])


class Events:
    """A host that is asked for its events."""

    def __init__(self, one: Event | None) -> None:
        self.one = one

    def run(self, *_: str) -> Completed:
        assert self.one, "a host that does not answer is not asked"
        return Completed(0, self.one.line().encode() + b"\n\0", b"")


def part(name: str, *attempts: Seen, deal: Deal = DEAL, **told: Any) -> PartStatus:
    plan = PLAN.without(lambda one: deal.at(name).runs_here(one.name))
    history = fold(History(), parse_snapshot(stage.an_answer(*attempts, **told)))
    return PartStatus(name, classify(stage.a_view(plan, name), history))


def whole(*parts: PartStatus, deal: Deal = DEAL) -> RunStatus:
    return joined(parts, deal, {"maze_p": 0, "maze_q": 1})


DONE = Seen("maze_p").ended(records=4)
ENDED: dict[str, Any] = {"done": {"at": NOW}, "dispatcher": None}


def test_a_session_that_its_giver_is_just_about_to_start_shows_at_its_taker_alone() -> None:
    starts, runs = Seen("maze_q", life="starting", claimed=False, started=None), Seen("maze_q")
    hosts = [one.host for one in whole(part("x", starts, deal=MOVED), part("y", deal=MOVED), deal=MOVED).sessions]
    assert hosts == ["x", "y"]
    both = whole(part("x", runs, deal=MOVED), part("y", deal=MOVED), deal=MOVED).sessions
    assert [(one.name, one.host) for one in both][1:] == [("maze_q", "x"), ("maze_q", "y")], "what runs is never hidden"


def test_a_run_goes_on_while_a_session_is_between_two_hosts() -> None:
    over = [part("x", DONE, deal=MOVED, **ENDED), part("y", deal=MOVED, **ENDED)]
    assert all(one.status.finished for one in over), "none of them knows of it"
    assert not whole(*over, deal=MOVED).finished
    there = Seen("maze_q").ended(records=4)
    assert whole(over[0], part("y", there, deal=MOVED, **ENDED), deal=MOVED).finished
    stopped = part("y", deal=MOVED, stopped=True, dispatcher=None)
    assert whole(over[0], stopped, deal=MOVED).finished, "a person has ended it"


def test_the_events_of_a_run_on_several_hosts_say_of_which_host_they_are_in_this_machines_time() -> None:
    def looked(name: str, **told: Any) -> Look:
        one = part(name, **told)
        return Look(1, stage.a_view(PLAN, name), History(), one.status)

    parts = {"x": looked("x"), "fast": looked("fast"), "away": looked("away")}
    parts["fast"] = parts["fast"]._replace(status=replace(parts["fast"].status, ahead=30.0))
    parts["away"] = parts["away"]._replace(status=replace(parts["away"].status, link=Link(reachable=False)))
    events = {"x": Event(NOW - 20, Kind.HALTED), "fast": Event(NOW + 5, Kind.DONE)}
    sources = {name: Source(cast("Any", Events(events.get(name))), one.view) for name, one in parts.items()}
    watcher = SimpleNamespace(source=SimpleNamespace(by_host=lambda: sources))
    known = Event(NOW - 40, Kind.DISPATCHING)
    known.host = "away"
    desk = SimpleNamespace(look=parts["x"]._replace(parts=parts), events=[known])
    found = Fetcher(cast("Any", desk), cast("Any", watcher), cast("Any", None), print)._read_events()
    assert [(one.host, one.at) for one in found] == [("away", NOW - 40), ("fast", NOW - 25), ("x", NOW - 20)]
    head, lines = pages.events(found, (), NOW, 80)
    assert head.plain.split()[:3] == ["TIME", "HOST", "SESSION"]
    assert [line.plain.split()[1] for line in lines] == ["x", "fast", "away"]


def test_a_place_in_the_queue_is_one_of_its_own_host() -> None:
    status = whole(part("x", deal=MOVED), part("y", deal=MOVED), deal=MOVED)
    assert [(row.session.host, row.why) for row in chosen(status, Choice())] == [
        ("x", "1st in the queue"),
        ("y", "1st in the queue"),
    ]


def test_it_names_what_has_moved() -> None:
    moved = whole(part("x", deal=MOVED), part("y", deal=MOVED), deal=MOVED).moved
    assert moved
    assert say(moved) == "1 session moved to another host before the first attempt: maze_q"
    back = MOVED.moved([MOVED.move("maze_q", "x")])
    assert whole(part("x", deal=back), part("y", deal=back), deal=back).moved is None


def test_a_hold_of_one_host_is_said_of_that_host_and_the_run_goes_on() -> None:
    drains = (stage.a_hold("draining", ""),)
    seen = whole(part("x", host=drains, deal=MOVED), part("y", deal=MOVED), deal=MOVED)
    assert seen.hold is None
    assert not heading.held(seen)
    assert [one.hold.kind if one.hold else "" for one in seen.hosts] == ["draining", ""]
    assert ["draining" in line.plain for line in box_lines(seen)] == [True, False]
    assert seen.advice
    said = "x is draining, and nothing new starts there until `combo resume "
    assert say(seen.advice).startswith(said)
    assert any(said in line for line in heading.remarks(seen, seen.link))
    assert any(said in words for _, words, _ in alerts(seen))
    found = answer(seen)
    assert found.hold is None
    assert [bool(one.hold) for one in found.hosts] == [True, False]
    ended = part("y", Seen("maze_q").ended(records=4), deal=MOVED, **ENDED)
    for other in (part("y", host=drains, deal=MOVED), ended):
        all_held = whole(part("x", host=drains, deal=MOVED), other, deal=MOVED)
        assert heading.held(all_held) == "DRAINING", "the hosts with work left start nothing"
        assert all_held.advice
        assert all_held.advice.code == "run_held"


def test_holds_and_who_gave_them_are_told_by_this_clock() -> None:
    """Beside the times of sessions. Of several orders the newest is told, whatever the clocks of their hosts say."""
    held = [Hold("draining", NOW - ago) for ago in (60.0, 30.0)]
    given = [Order("drain", user, "local", NOW - ago) for user, ago in (("ann", 60.0), ("bob", 30.0))]
    clocks = {"x": 7200.0, "y": -18000.0}
    parts = [
        one._replace(
            status=replace(
                one.status,
                ahead=ahead,
                hold=hold._replace(since=(hold.since or 0) + ahead),
                ordered=order._replace(at=(order.at or 0) + ahead),
            )
        )
        for one, hold, order, ahead in zip((part("x"), part("y")), held, given, clocks.values(), strict=True)
    ]
    seen = whole(*parts)
    assert (seen.hold, seen.ordered) == (held[0], given[1]._replace(user="ann, bob"))
    assert [one.hold for one in seen.hosts] == held
    alone = whole(parts[0], part("y"))
    assert alone.ordered
    assert say(alone.ordered.fact).startswith("on x: drained by ann"), "and nobody has drained y"


def test_each_host_has_its_own_queue() -> None:
    deal = Deal({**DEAL.data, "of": {"maze_p": "x", "maze_q": "y"}})
    rows = chosen(whole(part("x", deal=deal), part("y", deal=deal), deal=deal), Choice())
    assert [(row.session.host, row.why) for row in rows] == [("x", "1st in the queue"), ("y", "1st in the queue")]


def test_what_is_so_on_one_host_is_said_of_that_host_with_its_own_time() -> None:
    outage = Outage("restarted", NOW - 18000 - 60, ("maze_q",))
    x, y = part("x", Seen("maze_p")), part("y", dispatcher=None, deal=MOVED)
    y = y._replace(status=replace(y.status, ahead=-18000.0, outage=outage))
    assert y.status.advice
    seen = whole(x, y, deal=MOVED)
    assert seen.advice
    assert (seen.advice.code, say(seen.advice).partition(": ")[0]) == (y.status.advice.code, "on y")
    assert seen.outage
    assert seen.outage.fact("x, y").fields == {"host": "y", "at": NOW - 60, "sessions": 1}
    alone = whole(part("x", Seen("maze_p"), dispatcher=None), part("y", dispatcher=None, done={"at": NOW}))
    assert alone.advice
    assert "on" not in alone.advice.fields, "no other host has work left"


def test_the_host_page_has_the_gpus_of_each_host_with_its_own_sessions_and_no_line_of_the_heading() -> None:
    deal = MOVED
    parts = [
        part(name, Seen(session, gpus="0"), deal=deal, host=stage.a_host((used, 81000, 97)))
        for name, session, used in (("x", "maze_p", 61000), ("y", "maze_q", 41000))
    ]
    away = parts[1]._replace(status=replace(parts[1].status, link=Link(reachable=False, complaint="no route")))
    status = whole(*parts, deal=deal)
    shown = [line.plain for line in pages.host(status, (), (), 100).lines]
    x, y = (shown.index(f"{name}  ●1") for name in "xy")
    assert any("59.6/79.1 GiB" in line for line in shown[x:y])
    assert [line.strip() for line in shown[x:y] if "maze" in line] == ["● maze_p"]
    assert any("40.0/79.1 GiB" in line for line in shown[y:])
    assert not {line.plain for line in heading.host_line(status, 100)} & {*shown}
    shown = [line.plain for line in pages.host(whole(parts[0], away, deal=deal), (), (), 100).lines]
    assert any("y  ●1  unreachable, never seen: no route" in line for line in shown)
    assert not any("40.0/79.1" in line for line in shown)
    gone = away._replace(status=replace(away.status, link=Link(reachable=False, gone=True, last_seen=3)))
    seen = whole(parts[0], gone, deal=deal)
    assert any("y  ●1  run folder gone, seen 3 s ago" in line.plain for line in pages.host(seen, (), (), 100).lines)
    assert [one.folder_gone for one in answer(seen).hosts] == [False, True]


@pytest.mark.parametrize("gone", [True, False])
def test_only_of_a_host_that_does_not_answer_it_is_said_that_it_does_not(gone: bool) -> None:
    link = Link(reachable=False, gone=gone, last_seen=3, complaint="no route", since=NOW, failures=1)
    status = replace(part("x", Seen("maze_p")).status, link=link)
    plan, history = stage.a_view(PLAN, "x"), History()
    page = render(
        "host.html.j2",
        Site(),
        Look(1, plan, history, status),
        "host",
        **of_hosts(Look(1, plan, history, status), {}, 0),
    )
    told = [
        stage.picture(status, 100),
        heading.link_words(link),
        "; ".join(heading.remarks(status, link)),
        page_of(answer(status)),
        _trouble(link),
        page,
    ]
    away = ("unreachable", "not answer", "need the link")
    assert [any(words in one for words in away) for one in told] == [not gone] * len(told)
    assert all("folder" in one for one in told[:2] + told[3:]) is gone


def test_a_run_whose_hosts_wait_for_a_resume_is_held_though_nothing_runs_any_more() -> None:
    left: dict[str, Any] = {"host": (stage.a_hold("draining", ""),), "dispatcher": None, "deal": MOVED}
    there = part("y", Seen("maze_q").ended(records=4), deal=MOVED, **ENDED)
    for other in (part("y", **left), there):
        seen = whole(part("x", **left), other, deal=MOVED)
        assert (seen.finished, seen.hold and seen.hold.kind, seen.how_over) == (True, "draining", "held")
        assert changes(None, seen)[-1].partition("  ")[2].startswith("held: ")
        assert "; held" in page_of(answer(seen))
        assert seen.advice
        assert seen.advice.code == "run_held"
    over = whole(part("x", DONE, **left), there, deal=MOVED)
    assert (over.finished, over.hold, over.how_over) == (True, None, "finished"), "nothing waits on the held host"


def test_a_host_that_is_late_is_named_with_its_last_state_and_not_called_unreachable() -> None:
    late = Link(reachable=False, last_seen=5.0, complaint="no answer yet", late=True)
    seen = part("y", Seen("maze_q"), deal=MOVED)
    away = seen._replace(status=replace(seen.status, link=late))
    status = whole(part("x", Seen("maze_p"), deal=MOVED), away, deal=MOVED)
    assert status.link.reachable
    assert box_lines(status)[1].plain == "y  ●1  no answer yet, seen 5 s ago"
    assert ("stalled", "y: no answer yet, seen 5 s ago", "") in alerts(status)
    told = next(one for one in answer(status).hosts if one.host == "y")
    assert (told.reachable, told.complaint) == (False, "no answer yet")


def test_a_part_alone_says_first_whose_part_it_is_and_what_shows_the_whole() -> None:
    run = stage.a_view(PLAN).id
    told = {name: Fact("part_of_run", host=name, hosts=["x", "y"]) for name in ("x", "y")}
    parts = [part(name, DONE, deal=MOVED, **ENDED, part=one) for name, one in told.items()]
    alone = parts[0].status
    said = f"x's part of a run on x, y: 1 of 2 sessions; `combo status {run}` shows the whole run; on a machine"
    said += " that has not launched it, with --host for each of these hosts"
    assert alone.part
    assert say(alone.part) == said
    assert alone.finished
    assert heading.remarks(alone, alone.link)[0] == alerts(alone)[0][1] == said
    assert changes(None, alone)[1].endswith(said)
    assert answer(alone).facts[0].code == "part_of_run"
    assert whole(*parts, deal=MOVED).part is None


AWAY = Link(reachable=False, since=NOW, last_seen=60.0, complaint="no route")


def test_of_a_host_that_was_given_up_nothing_runs_and_it_is_called_so_in_every_view() -> None:
    lost = DEAL.renewed({"maze_q": "y"}, {"x": {}}, Era())
    x = part("x", Seen("maze_q"), deal=lost, slots=1)
    x = x._replace(status=given_up(replace(x.status, link=AWAY), {"maze_p"}))
    y = part("y", Seen("maze_q"), deal=lost, slots=1)
    seen = whole(x, y, deal=lost)
    assert [(one.name, one.host, one.word) for one in seen.sessions] == [
        ("maze_p", "x", "succeeded"),  # by its records; the last look at x has not shown it
        ("maze_q", "y", "running"),
    ]
    assert (len(seen.busy), seen.slots, [one.lost for one in seen.hosts]) == (1, 1, [True, False])
    assert box_lines(seen)[0].plain == "x  ✓1  given up"
    assert ("stalled", "x: given up", "") in alerts(seen)
    assert [line.partition("  ")[2] for line in changes(None, seen)].count("! x was given up") == 1
    assert not any("given up" in line for line in changes(seen, seen))
    looks = {one.host: Look(1, stage.a_view(PLAN, one.host), History(), one.status) for one in (x, y)}
    look = Look(1, stage.a_view(PLAN, "x"), History(), seen, parts=looks)
    page = render("host.html.j2", Site(), look, "host", **of_hosts(look, {}, 0))
    assert "given up" in page
    assert "unreachable" not in page
    assert page.count("busy</span>") == 1


def test_what_a_host_shows_that_is_away_is_old_and_predicts_nothing() -> None:
    x, y = part("x", Seen("maze_p", changed=NOW - 2), deal=MOVED), part("y", deal=MOVED)
    away = [one._replace(status=as_last_seen(replace(one.status, link=AWAY))) for one in (x, y)]
    for parts in ((away[0], y), (x, away[1])):
        seen = whole(*parts, deal=MOVED)
        rows = {row.session.host: row for row in chosen(seen, Choice())}
        old = rows[next(one.host for one in seen.hosts if not one.link.reachable)]
        assert old.why == "unreachable, seen 1 min ago"
        assert old.session.expected is None
    assert [one.idle for one in away[0].status.sessions] == [62.0]


def test_a_host_that_is_stopped_is_not_called_paused_besides() -> None:
    held = {"host": (stage.a_hold("paused", ""),), "dispatcher": None, "deal": MOVED}
    seen = whole(part("x", stopped=True, **held), part("y", **held), deal=MOVED)
    assert [one.hold and one.hold.kind for one in seen.hosts] == [None, "paused"]


def test_no_state_is_left_out_of_the_counts_of_a_narrow_screen() -> None:
    view, answer = stage.a_busy_run()
    status = stage.status_of(view, answer)
    for width in (160, 80, 60, 50):
        (line,) = heading.counts(status, width)
        assert sum(map(int, re.findall(r"\d+", line.plain.partition(" of ")[0]))) >= len(status.proper), (
            width,
            line.plain,
        )
