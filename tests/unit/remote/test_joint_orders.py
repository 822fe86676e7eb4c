"""Orders to a run on several hosts: one answer for all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from comborun.answers.orders import Steered
from comborun.api import joint
from comborun.api.joint_look import JointSource
from comborun.api.named import Target
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
