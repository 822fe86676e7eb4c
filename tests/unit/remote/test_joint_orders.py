"""Orders to a run on several hosts: one answer for all."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import pytest

from comborun.answers.orders import Steered
from comborun.api import joint, steering
from comborun.api.joint_look import JointSource
from comborun.api.named import Target
from comborun.cli import orders
from comborun.errors import HostError, UserError
from comborun.remote import run_orders
from comborun.remote.boxes import Answered, BoxState
from comborun.remote.run_orders import Line, Reply
from comborun.remote.transport import Completed, LocalTransport
from comborun.rules.host import Denial

if TYPE_CHECKING:
    from comborun.remote.transport import Transport


def parts_on(*names: str) -> Target:
    parts = []
    for name in names:
        transport = LocalTransport()
        transport.host = name
        parts.append(Target(transport, "run", f"/{name}"))
    return parts[0]._replace(boxes=tuple(parts))


@pytest.mark.parametrize(("verb", "hinted"), [("retry", True), ("set", False)])
def test_an_order_that_names_no_sessions_is_not_told_where_their_names_are(
    verb: run_orders.Verb, hinted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_orders, "_order", lambda *_, **__: Completed(64, b"", b"it is refused"))
    with pytest.raises(UserError) as caught:
        run_orders.steer(LocalTransport(), "/run", verb, "x")
    assert ("names the sessions" in caught.value.hint) is hinted


def test_a_stop_ends_the_sessions_of_a_host_that_can_not_read_its_deal(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, ended = parts_on("torn", "away"), list[str]()
    refused = UserError("boxes/deal.json can't be read", code=str(Denial.DEAL_UNREADABLE))
    found = Answered[BoxState]({}, {"torn": refused, "away": HostError("it is off")})
    monkeypatch.setattr(joint, "states", lambda _: found)

    def end(transport: Transport, _: str) -> Reply:
        ended.append(transport.host)
        return Reply((Line("nothing runs", {}),), 0)

    monkeypatch.setattr(run_orders, "stop", end)
    said = joint.stop_all(whole)
    assert ended == ["torn"]
    assert not said.clean
    assert "torn: nothing runs" in said.lines


def test_why_a_host_that_answers_takes_no_part_is_said_once_and_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    told = list[str]()
    whole = parts_on("torn", "away")
    monkeypatch.setattr(whole.listener, "note", told.append)
    source = JointSource(whole)
    for _ in range(2):
        source._tell_refusals([UserError("torn: s.out can't be read"), HostError("it is off")])
    assert told == ["torn: s.out can't be read"]


def test_an_order_to_all_that_failed_is_done_though_a_host_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = parts_on("x", "y")
    monkeypatch.setattr(joint, "parts_of", lambda target, _: [(one, ()) for one in target.boxes])

    def act(one: Target, _: tuple[str, ...]) -> Steered:
        return Steered("run", one.transport.host == "y", (f"of {one.transport.host}",), None)

    assert joint.on_each(whole, (), act, some=True).done
    assert joint.on_each(whole, (), act, some=True).lines == ("x: of x", "y: of y")
    assert not joint.on_each(whole, (), act).done


def test_whoever_pauses_hosts_of_which_one_is_away_is_told_once_how_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = parts_on("x", "y", "away")
    monkeypatch.setattr(joint, "parts_of", lambda target, _: [(one, ()) for one in target.boxes])

    def steer(transport: Transport, *_: str) -> Reply:
        if transport.host == "away":
            raise HostError("it is off")
        return Reply((Line("paused", {}),), 0)

    monkeypatch.setattr(steering, "steer", steer)
    held = steering.hold(whole, "pause")
    assert not held.done
    assert held.note == "run `combo resume run` to continue"


def test_the_full_screen_says_on_which_host_a_run_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steering, "planned_resumes", lambda target: [(one, one.run) for one in target.boxes])
    monkeypatch.setattr(orders, "resume_lines", lambda _: ("goes on", "  with 2 sessions"))
    monkeypatch.setattr(steering, "resume", lambda part, _: "started" if part.transport.host == "y" else "")
    said = orders.orders(parts_on("x", "y")).resume()
    assert said == ("x: goes on", "  with 2 sessions", "y: goes on", "  with 2 sessions", "y: started")


def test_a_host_that_hangs_is_waited_for_once_for_an_order_to_a_session(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, asked = parts_on("x", "frozen"), list[str]()

    def source(part: Target) -> object:
        if part.transport.host == "frozen":
            raise HostError("it does not answer in time")
        return object()

    def states(target: Target, away: Collection[str]) -> Answered[BoxState]:
        asked.extend(one.transport.host for one in target.boxes if one.transport.host not in away)
        return Answered({}, {"x": UserError("boxes/deal.json can't be read")})

    monkeypatch.setattr(Target, "source", source)
    monkeypatch.setattr(joint, "states", states)
    with pytest.raises(UserError, match="can't be read"):
        joint.parts_of(whole, ["maze_good"])
    assert asked == ["x"]
