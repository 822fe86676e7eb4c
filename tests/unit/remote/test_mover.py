"""Whoever moves sessions may be killed at any step, and two may do it at once: each session stays at one host."""

from __future__ import annotations

import random
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hosts_stage import HOSTS, SESSIONS, Hosts, Killed, hosts_at

from comborun.api import joint, moving
from comborun.api.moving import Moved, Mover, unfinished
from comborun.errors import HostError, UserError
from comborun.host.record import deals
from comborun.host.system import files
from comborun.planner.moving import Step
from comborun.remote import boxes
from comborun.remote.boxes import Answered, BoxState
from comborun.rules.deal import Deal


@pytest.fixture
def hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hosts:
    return hosts_at(tmp_path, monkeypatch)


def mover(hosts: Hosts, wanted: list[Step], monkeypatch: pytest.MonkeyPatch) -> tuple[Mover, list[Moved], list[str]]:
    told, noted = list[Moved](), list[str]()
    monkeypatch.setattr(moving, "useful", lambda *_: wanted)
    return Mover(hosts.parts, told.append, noted.append), told, noted


def newest(states: Mapping[str, BoxState]) -> Deal:
    return joint.newest_of(states)[0]


def test_a_move_is_written_at_three_hosts_in_this_order_and_starts_the_taker(
    hosts: Hosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    move, told, _ = mover(hosts, [Step("s1", "b", "c"), Step("s4", "b", "c")], monkeypatch)
    states = hosts.states()
    hosts.orders.clear()
    done = move({}, states, newest(states), 0.0)
    assert hosts.orders == [("a", "moving"), ("b", "release"), ("c", "receive"), ("b", "release"), ("c", "receive")]
    assert done == told == [Moved("s1", "b", "c"), Moved("s4", "b", "c")]
    assert hosts.owners()["s1"] == hosts.owners()["s4"] == ["c"]
    assert hosts.started == ["c"], "once"
    hosts.orders.clear()
    states = hosts.states()
    move({}, states, newest(states), 0.0)
    assert ("a", "moving") not in hosts.orders, "it is written down"
    move, told, _ = mover(hosts, [Step("s2", "c", "b")], monkeypatch)
    left = {host: one for host, one in hosts.states().items() if host != "a"}
    move({}, left, newest(left), 0.0)
    assert told == [Moved("s2", "c", "b")], "the first host may be away then"


def test_nothing_moves_before_the_first_host_has_written_it_down(hosts: Hosts, monkeypatch: pytest.MonkeyPatch) -> None:
    move, told, _ = mover(hosts, [Step("s2", "c", "b")], monkeypatch)
    left = {host: one for host, one in hosts.states().items() if host != "a"}
    move({}, left, newest(left), 0.0)
    assert told == []


def test_that_sessions_may_move_is_asked_once_by_each_who_moves_whatever_a_look_has_shown(
    hosts: Hosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a look shows may not be on the disk of the first host yet."""
    states = hosts.states()
    boxes.let_move(*hosts.parts["a"].place, newest(states))
    states = hosts.states()
    assert states["a"].moving
    hosts.claim("b", "s1")
    hosts.orders.clear()
    move, _, _ = mover(hosts, [Step("s1", "b", "c")], monkeypatch)
    for _ in range(2):
        move({}, states, newest(states), 0.0)
    assert [order for order in hosts.orders if order[1] == "moving"] == [("a", "moving")]


def test_what_has_begun_or_moved_meanwhile_stays_and_the_others_move(
    hosts: Hosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    states = hosts.states()
    deal = newest(states)
    hosts.claim("b", "s1")
    move, told, noted = mover(hosts, [Step("s1", "b", "c"), Step("s4", "b", "c")], monkeypatch)
    move({}, states, deal, 0.0)
    assert told == [Moved("s4", "b", "c")]
    move, told, noted = mover(hosts, [Step("s4", "b", "a")], monkeypatch)
    move({}, states, deal, 0.0)  # what it saw is old
    assert (told, noted) == ([], [])
    assert hosts.owners()["s4"] == ["c"]


def test_a_host_of_an_older_version_is_named_once_and_takes_no_part(
    hosts: Hosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts.old = {"b"}
    move, told, noted = mover(hosts, [Step("s1", "b", "c"), Step("s2", "c", "a")], monkeypatch)
    for _ in range(2):
        states = hosts.states()
        move({}, states, newest(states), 0.0)
    assert told[0] == Moved("s2", "c", "a")
    assert len(noted) == 1
    assert "b: " in noted[0]
    hosts.old, before = {"a"}, len(hosts.orders)
    move, told, noted = mover(hosts, [Step("s5", "c", "b")], monkeypatch)
    fresh = Deal({**newest(hosts.states()).data, "number": [7, 0], "moves": []})
    move({}, {host: one._replace(moving=False) for host, one in hosts.states().items()}, fresh, 0.0)
    assert (told, len(noted)) == ([], 1)
    assert not [one for one in hosts.orders[before:] if one[1] in {"release", "receive"}], "the first host is too old"


def test_a_full_disk_is_told_wherever_it_is(hosts: Hosts, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: str, _text: str, **_: object) -> bool:
        raise OSError(28, "No space left on device", path)

    monkeypatch.setattr(files, "create_whole", full)
    monkeypatch.setattr(deals, "keep", lambda path, _: (_ for _ in ()).throw(deals.unwritable(path)))
    states = hosts.states()
    move, told, noted = mover(hosts, [Step("s1", "b", "c")], monkeypatch)
    move({}, states, newest(states), 0.0)
    moved = newest(states).moved([newest(states).move("s2", "b")])
    move({}, states, moved, 0.0)
    assert not told
    assert len(noted) == 2, "the first host, then the giver"
    assert all("no session moves" in one for one in noted)
    target: Any = SimpleNamespace(boxes=[*hosts.parts.values()], listener=SimpleNamespace(note=noted.append))
    joint._complete(target, states, moved)
    assert "s2 goes there, and starts nowhere" in noted[2]


def test_a_host_of_the_run_that_this_machine_does_not_know_is_named(hosts: Hosts) -> None:
    del hosts.parts["a"]
    with pytest.raises(UserError, match="a has a part of run-x"):
        joint.part_on(SimpleNamespace(run="run-x", boxes=[*hosts.parts.values()]), "a")  # type: ignore[arg-type]


def test_a_host_is_abandoned_when_each_look_for_long_has_shown_no_dispatcher(
    hosts: Hosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, given = [100.0], list[list[str]]()
    monkeypatch.setattr(moving, "elapsed", lambda: now[0])
    monkeypatch.setattr(moving, "useful", lambda *told: given.append(told[-1]) or [])
    states = hosts.states()
    move = Mover(hosts.parts, print, print)
    lives = {host: one._replace(lives=True) for host, one in states.items()}
    for seconds, seen in ((0, states), (moving.DEAD_S - 1, states), (1, states), (1, {**lives, "b": states["b"]})):
        now[0] += seconds
        move({}, seen, newest(states), 0.0)
    now[0] += moving.DEAD_S - 1
    move({}, states, newest(states), 0.0)
    assert given == [[], [], ["a", "b", "c"], ["b"], ["b"]]


@pytest.mark.parametrize("seed", range(12))
def test_two_who_move_at_once_and_die_at_any_step_leave_each_session_at_one_host(
    hosts: Hosts, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    chance = random.Random(seed)

    def trouble() -> None:
        fate = chance.random()
        if fate < 0.15:
            raise Killed
        if fate < 0.3:
            raise HostError("cut")

    stale = hosts.states()
    for _ in range(8):
        seen = stale if chance.random() < 0.3 else hosts.states()
        deal = newest(seen)
        wanted = [
            Step(name, deal.box_of(name), chance.choice([host for host in HOSTS if host != deal.box_of(name)]))
            for name in chance.sample(SESSIONS, 2)
        ]
        move, _, _ = mover(hosts, wanted, monkeypatch)
        hosts.trouble = trouble
        monkeypatch.setattr(moving, "at_once", lambda acts: Answered({name: act() for name, act in acts.items()}, {}))
        with suppress(Killed):
            move({}, seen, deal, 0.0)
        hosts.trouble = lambda: None
        assert all(len(found) <= 1 for found in hosts.owners().values()), hosts.owners()
        if chance.random() < 0.3:
            name = chance.choice(SESSIONS)
            for host in hosts.owners()[name]:
                with suppress(FileExistsError):
                    hosts.claim(host, name)
    target = SimpleNamespace(boxes=[*hosts.parts.values()], listener=SimpleNamespace(note=lambda _: None))
    hosts.started.clear()
    before = unfinished(hosts.states(), newest(hosts.states()))
    joint._complete(target, hosts.states(), newest(hosts.states()))  # type: ignore[arg-type]
    assert not unfinished(hosts.states(), newest(hosts.states()))
    assert all(len(found) == 1 for found in hosts.owners().values()), hosts.owners()
    assert {move.taker for move in before} == {*hosts.started}, "whoever completes a move starts the taker"
