"""What each host of a grid run can hold, what waits there, and how long sessions take: from one look at all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import gridtext
import monitor_stage as stage
import pytest
from monitor_stage import NOW, Seen

from comborun.api import joint_look
from comborun.api.moving import may_go_on, useful
from comborun.api.named import Target
from comborun.api.room import MOST_MOVES, Rooms, rooms_of
from comborun.api.room import Seen as SeenHost
from comborun.errors import HostError
from comborun.model.plan import Plan
from comborun.model.resources import Reserve
from comborun.monitor import observe, watch
from comborun.monitor.classify import classify
from comborun.monitor.joint import PartStatus, joined
from comborun.monitor.observe import History, RunView, fold
from comborun.monitor.snapshot import parse_snapshot
from comborun.monitor.watch import Look, Source
from comborun.planner.moving import Step
from comborun.remote.boxes import BoxState
from comborun.rules.deal import Deal, Era, Stops
from comborun.rules.room.capacity import Request
from comborun.words import say

NAMES = [f"maze_p{number}" for number in range(8)]
PLAN = stage.a_plan([stage.a_session(f"p{number}", "maze") for number in range(8)], parallel=2)
DEAL = Deal(
    {
        "grid_run": "g",
        "box": "x",
        "number": [0, 0],
        "boxes": ["x", "y"],
        "of": {name: "xy"[number >= 5] for number, name in enumerate(NAMES)},
        "lost": {},
    }
)
STATE = BoxState(DEAL, Stops(), "run", Era(), lives=True, stopped=False, done=False)


def host(name: str, *attempts: Seen, deal: Deal = DEAL, plan: Plan = PLAN, state: BoxState = STATE, **told: Any) -> Any:
    plan = plan.without(lambda one: deal.at(name).runs_here(one.name))
    view = stage.a_view(plan, name)
    answer = stage.an_answer(*attempts, **{"slots": 2, **told})
    history = fold(History(), parse_snapshot(answer), {one.name: one for one in plan.sessions})
    return SeenHost(Look(0, view, history, classify(view, history)), state)


def ran(number: int, seconds: float, records: int = 100) -> Seen:
    """A session that has taken so long for so many episodes, all that it has by now."""
    one = Seen(NAMES[number], started=NOW - seconds, counts=(records, 0))
    return one if records < 100 else replace(one, started=NOW - 1 - seconds).ended(records=100)


def rooms(deal: Deal = DEAL, **hosts: Any) -> Rooms:
    return rooms_of(hosts, deal)


BUSY = host("x", ran(0, 100, 20), ran(1, 100, 20))
IDLE = host(
    "y", ran(5, 200), ran(6, 200), ran(7, 200), dispatcher=None, done=True, state=STATE._replace(done=True, lives=False)
)


def test_what_runs_and_what_waits_with_the_pace_of_each_host() -> None:
    found = rooms(x=BUSY, y=IDLE)
    x, y = found.places["x"], found.places["y"]
    assert x.waiting == tuple(NAMES[2:5])
    assert x.movable == frozenset(NAMES[2:5])
    assert x.running == pytest.approx((400, 400), rel=0.05)
    assert (y.waiting, y.running) == ((), ())
    assert found.timed
    assert x.lengths[NAMES[3]] == pytest.approx(500, rel=0.05)
    assert y.lengths[NAMES[3]] == pytest.approx(200, rel=0.05)
    assert (x.room(NAMES[2:5]), y.room(NAMES[2:5])) == (0, 2)
    assert (x.takes, y.takes, x.stuck, y.stuck) == (True, True, False, False)


def test_they_move_to_the_host_with_room() -> None:
    looks, states = {"x": BUSY.look, "y": IDLE.look}, {"x": STATE, "y": IDLE.state}
    assert useful(looks, states, DEAL) == [Step(NAMES[4], "x", "y"), Step(NAMES[3], "x", "y")]
    for stops, era in ((Stops(1, 0), Era()), (Stops(), Era(1, "word"))):
        changed = {**states, "y": STATE._replace(stops=stops, era=era)}
        assert useful(looks, changed, DEAL) == [], "stopped, or an era was promised without its deal"
    assert useful(looks, {"x": STATE}, DEAL) == [], "the other does not answer"
    newer = Deal({**DEAL.data, "number": [0, 1]})
    assert useful(looks, {**states, "y": IDLE.state._replace(deal=newer)}, newer) == [], "x does not know the deal"


def test_what_has_no_dispatcher_gives_only_if_that_lasts() -> None:
    dead = STATE._replace(lives=False)
    x = host("x", dispatcher=None, state=dead)
    looks, states = {"x": x.look, "y": IDLE.look}, {"x": dead, "y": IDLE.state}
    assert useful(looks, states, DEAL) == []
    assert [one.session for one in useful(looks, states, DEAL, abandoned=["x"])] == [NAMES[4], NAMES[3]]


def test_a_run_goes_on_while_what_waits_on_a_drained_host_could_go_to_another_one() -> None:
    left: dict[str, Any] = {"host": [stage.a_hold("draining", "")], "dispatcher": None}
    dead, over = STATE._replace(lives=False), IDLE.state
    x = host("x", ran(0, 100), state=dead, **left)

    def goes_on(x: Any = x, y: Any = IDLE, deal: Deal = DEAL) -> bool:
        assert joined([PartStatus("x", x.look.status), PartStatus("y", y.look.status)], deal, {}).finished
        return may_go_on({"x": x.look, "y": y.look}, {"x": x.state, "y": y.state}, deal)

    assert goes_on()
    done = [ran(number, 200) for number in (5, 6, 7)]
    tried = [ran(number, 100, 20).ended("stopped", "none") for number in range(1, 5)]
    for why, seen in {
        "all hosts are held": {"y": host("y", state=dead, **left)},
        "the other was stopped": {
            "y": host("y", *done, stopped=True, dispatcher=None, state=over._replace(stopped=True))
        },
        "the run was stopped": {"y": IDLE._replace(state=over._replace(stops=Stops(1, 0)))},
        "the other can run none of them": {
            "y": host("y", *done, plan=gpu_plan(), done=True, dispatcher=None, state=over, host=[])
        },
        "what has begun stays": {"x": host("x", ran(0, 100), *tried, state=dead, **left)},
        "a breaker has halted it": {"x": host("x", state=dead, host=[stage.a_hold("halted", "")], dispatcher=None)},
    }.items():
        assert not goes_on(**seen), why


def test_what_is_on_its_way_moves_once() -> None:
    deal = DEAL.moved([DEAL.move(NAMES[4], "y")])
    x = host("x", *(ran(number, 100) for number in range(4)), deal=deal)
    y = host("y", ran(5, 100, 20), ran(6, 100, 20), ran(7, 100), deal=deal)
    looks, knows = {"x": x.look, "y": y.look}, STATE._replace(deal=deal)
    assert useful(looks, {"x": knows, "y": knows}, deal) == [Step(NAMES[4], "y", "x")]
    assert useful(looks, {"x": knows, "y": STATE}, deal) == [], "y has not got it yet"


def of_combos(*combos: tuple[str, str]) -> Plan:
    sessions = (stage.a_session(*combo) for combo in combos)
    return replace(PLAN, sessions=tuple(replace(one, name=name) for one, name in zip(sessions, NAMES, strict=True)))


MAZE, FIELD, HEAVY = ("p", "maze"), ("p", "field"), ("heavy", "maze")


def test_a_slow_host_a_long_environment_and_a_heavy_policy_are_told_apart() -> None:
    plan = of_combos(MAZE, FIELD, HEAVY, MAZE, FIELD, HEAVY, MAZE, FIELD)
    x = host("x", ran(0, 100), ran(1, 1000), plan=plan)
    y = host("y", ran(5, 600), ran(6, 200), ran(7, 2000), plan=plan)
    found = rooms(x=x, y=y)
    each = [[found.places[name].lengths[NAMES[number]] for number in (3, 4, 2)] for name in "xy"]
    assert each[0][0] * 9 < each[0][1] < each[0][0] * 11, "a field takes ten times as long"
    assert each[0][2] > 1.5 * each[0][0], "the heavy policy"
    assert all(1.7 < slow / fast < 3 for fast, slow in zip(*each, strict=True)), "y is slow"


def test_the_length_of_what_a_host_has_never_run_comes_from_the_others_and_its_speed() -> None:
    plan = of_combos(MAZE, FIELD, HEAVY, MAZE, ("new", "field"), HEAVY, MAZE, FIELD)
    y = host("y", ran(6, 200), ran(7, 2000), plan=plan)
    found = rooms(x=host("x", ran(0, 100), plan=plan), y=y)
    assert 900 < found.places["x"].lengths[NAMES[4]] < 1200


def test_before_anything_has_run_lengths_are_what_was_measured_earlier_or_counts() -> None:
    def measured(seconds: int) -> Plan:
        return replace(PLAN, sessions=tuple(replace(one, expected_s=seconds) for one in PLAN.sessions))

    found = rooms(x=host("x", plan=measured(100)), y=host("y", plan=measured(300)))
    assert found.timed
    assert [found.places[name].lengths[NAMES[0]] for name in "xy"] == [100, 300]
    found = rooms(x=host("x"), y=host("y"))
    assert not found.timed
    assert [found.places[name].lengths[NAMES[0]] for name in "xy"] == [100, 100], "episodes"


def test_what_may_not_move() -> None:
    again = Seen(NAMES[2]).ended("exited", "missing", **{"class": "lost"})
    waits = stage.a_wait(NAMES[2], stage.Fact("retry_after", failure="lost", attempt=1), NOW + 5)
    deal = DEAL
    for number in range(MOST_MOVES):
        deal = deal.moved([deal.move(NAMES[3], "yx"[number % 2])])
    without = Deal({**deal.seen, "of": {name: box for name, box in deal.of.items() if name != NAMES[4]}})
    seen = host("x", ran(0, 100, 20), again, deal=without, host=[*stage.HOST, waits])
    place = rooms(without, x=seen).places["x"]
    assert {*NAMES[1:4]} <= {*place.waiting}
    assert place.movable == {NAMES[1]}, "one has an attempt, one has moved often, one is not in the deal"


@pytest.mark.parametrize(
    ("told", "changes", "takes", "gives", "stuck"),
    [
        ({}, {}, True, True, False),
        ({}, {"stopped": True}, False, False, False),
        ({"dispatcher": None}, {"lives": False}, False, True, True),
        ({"host": [stage.a_hold("paused", "")]}, {}, False, False, True),
        ({"host": [stage.a_hold("draining", "")]}, {}, False, True, True),
        ({"host": [stage.a_hold("halted", "")]}, {}, False, False, True),
        ({"host": [stage.NO_DISK]}, {}, False, True, False),
    ],
)
def test_who_takes_and_who_gives(
    told: dict[str, Any], changes: dict[str, Any], takes: bool, gives: bool, stuck: bool
) -> None:
    place = rooms(x=host("x", ran(0, 100, 20), state=STATE._replace(**changes), **told)).places["x"]
    assert (place.takes, bool(place.movable), place.stuck) == (takes, gives, stuck)


def cards(*used: int) -> list[dict[str, Any]]:
    gpus = [{"index": number, "uuid": f"GPU-{number}", "total": 24_000, "used": mib} for number, mib in enumerate(used)]
    return [{"use": {"gpus": gpus}}]


def gpu_plan(mib: int = 10_000, **more: Any) -> Plan:
    sessions = [replace(one, gpus=1, request=Request(gpus=1, gpu_memory=mib)) for one in PLAN.sessions]
    return replace(PLAN, sessions=tuple(sessions), gpus=(0, 1), **more)


def room(
    *attempts: Seen, used: Sequence[int], plan: Plan | None = None, uses: Mapping[str, str] = {}, **more: Any
) -> Any:
    seen = host(
        "x", *attempts, plan=plan or gpu_plan(), state=STATE._replace(uses=uses), slots=9, host=cards(*used), **more
    )
    place = rooms(x=seen).places["x"]
    return place.room(NAMES), len(place.lengths)


def test_room_on_gpus_is_what_the_ledger_would_give() -> None:
    assert room(used=(0, 0)) == (4, 8)
    assert room(used=(15_000, 0)) == (2, 8), "somebody else is there"
    mine = Seen(NAMES[0], gpus="0")
    assert room(mine, used=(9_000, 0)) == (3, 8), "its own session counts once, by what it asked for"
    assert room(used=(0, 0), plan=gpu_plan(30_000)) == (0, 0), "it can never hold one"
    assert room(used=(), plan=gpu_plan())[1] == 0, "the driver says nothing"
    assert room(used=(0, 0), uses={"gpus": "1", "reserve_gpu_mib": "0", "reserve_memory_mib": "0"}) == (2, 8)
    assert room(used=(0, 0), uses={"gpus": "0,1", "reserve_gpu_mib": "12000"}) == (2, 8)
    assert room(used=(0, 0), plan=gpu_plan(reserve=Reserve(gpu_memory=4_500))) == (2, 8)
    assert (
        rooms(x=host("x", plan=gpu_plan(), slots=9, host=[*cards(0, 0), stage.a_quarantine(0, "gpu_fault")]))
        .places["x"]
        .room(NAMES)
        == 2
    )


def test_a_model_server_counts_once() -> None:
    text = """\
policies: [a]
environments: [b]
command: run {server.vlm.url}
episodes: 1
resources: {gpus: 1}
servers:
  vlm:
    command: serve --port {port}
    resources: {gpus: 1, gpu_memory: 10 GiB}
"""
    servers = gridtext.plan(text, gridtext.host(2, 24_000)).servers
    told = [*cards(10_240, 0), {"servers": [{"name": "vlm", "state": "ready", "gpus": [0]}]}]
    place = rooms(x=host("x", plan=gpu_plan(servers=servers), slots=9, host=told)).places["x"]
    assert place.room(NAMES) == 3, "two beside nothing, one beside the server"


def test_what_one_host_has_alone_has_a_length_there() -> None:
    """`resume` adds sessions for gaps to the host that has them."""
    extra = replace(stage.a_session("p0", "maze", count=10), name="maze_p0_gap")
    x = host("x", ran(0, 100, 20), plan=replace(PLAN, sessions=(*PLAN.sessions, extra)), deal=DEAL)
    found = rooms(y=IDLE, x=x)
    assert found.places["x"].lengths["maze_p0_gap"] == pytest.approx(50, rel=0.05)
    assert "maze_p0_gap" not in found.places["y"].lengths
    assert "maze_p0_gap" in found.places["x"].waiting
    assert "maze_p0_gap" not in found.places["x"].movable


def test_sessions_move_after_each_look_of_whoever_lets_them_and_else_the_status_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    moved = list[tuple[object, ...]]()
    seen, transports = {"x": BUSY, "y": IDLE}, {name: stage.StagedHost([b""], host=name) for name in "xy"}
    parts = [Target(transports[name], "run", f"/{name}") for name in "xy"]
    target = parts[0]._replace(boxes=(*parts,))

    def answer(_: object, one: Target) -> Any:
        found = seen[one.transport.host]
        return joint_look._Answer(found.state, Source(one.transport, found.look.view), found.look.history)

    monkeypatch.setattr(joint_look.JointSource, "_ask", answer)
    monkeypatch.setattr(joint_look, "settle", lambda *_: DEAL)
    monkeypatch.setattr(joint_look, "Mover", lambda *_: lambda *told: moved.append(told))
    alone = joint_look.watched(target)
    alone.fold(History())
    assert not moved
    told = alone.look(1, History()).status.would_move
    assert told
    assert say(told).startswith("2 sessions would end earlier on y")
    moving = joint_look.watched(target, moves=True)
    moving.fold(History())
    assert [(sorted(looks), sorted(states)) for looks, states, *_ in moved] == [(["x", "y"], ["x", "y"])]
    assert moving.look(1, History()).status.would_move is None
    left: dict[str, Any] = {"host": [stage.a_hold("draining", "")], "dispatcher": None}
    seen["x"] = host("x", state=STATE._replace(lives=False), **left)
    drained = joint_look.watched(target).status()
    assert (drained.finished, drained.how_over) == (False, "held")
    seen["y"] = host("y", state=STATE._replace(lives=False), **left)
    assert joint_look.watched(target).status().finished


@pytest.mark.parametrize(
    ("seen_before", "now", "counts"),
    [(True, 4, (10, 10, 10)), (True, 12, (12, 12, 10)), (False, 4, (10, 0, 0)), (False, 12, (12, 2, 0))],
)
def test_the_episodes_that_count_of_a_lost_host_are_counted_while_the_session_runs_elsewhere(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, seen_before: bool, now: int, counts: tuple[int, int, int]
) -> None:
    """The lost host had 20 episodes with 15 successes, of which the first 10 count. The other one begins at the first,
    and all fail there.
    """
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    lost = DEAL.renewed({NAMES[0]: "y"}, {"x": {NAMES[0]: [[0, 10]]}}, Era())
    seen = {
        "x": host("x", Seen(NAMES[0], counts=(20, 15))),
        "y": host("y", Seen(NAMES[0], counts=(now, 0)), deal=lost),
    }
    parts = [Target(stage.StagedHost([b""], host=name), "run", f"/{name}") for name in "xy"]

    def answer(_: object, one: Target) -> Any:
        if one.transport.host not in seen:
            raise HostError("away")
        found = seen[one.transport.host]
        return joint_look._Answer(found.state, Source(one.transport, found.look.view), found.look.history)

    monkeypatch.setattr(joint_look.JointSource, "_ask", answer)
    monkeypatch.setattr(joint_look, "settle", lambda *_: lost)
    source = joint_look.JointSource(parts[0]._replace(boxes=(*parts,)))
    if seen_before:
        source.status()
    del seen["x"]
    (one,) = [one for one in source.status().sessions if one.name == NAMES[0]]
    assert (one.host, one.done, one.recorded, one.successes) == ("y", *counts)


def test_a_plan_that_an_earlier_look_has_left_here_is_read_again_only_if_there_is_a_newer_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    asked, newest = list[str](), [1]

    def read(transport: Any, directory: str, *_: object) -> RunView:
        asked.append(transport.host)
        return stage.a_view(PLAN, transport.host, directory)._replace(number=newest[0])

    monkeypatch.setattr(observe, "load_run", read)
    monkeypatch.setattr(watch, "load_run", read)
    monkeypatch.setattr(joint_look.boxes, "look", lambda *_: STATE)
    monkeypatch.setattr(joint_look, "settle", lambda *_: DEAL)
    monkeypatch.setattr(watch, "observe", lambda *_: stage.an_answer(ran(0, 100), host=[{"plan": newest[0]}]))
    parts = tuple(Target(stage.StagedHost([b""], host=name), stage.a_view(PLAN).id, "~/it") for name in "xy")

    def look() -> list[str]:
        asked.clear()
        assert joint_look.watched(parts[0]._replace(boxes=parts)).status().counts
        return sorted(asked)

    assert look() == ["x", "y"]
    assert look() == []
    newest[0] = 2
    assert look() == ["x", "y"]
