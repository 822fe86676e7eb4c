"""Orders to a run on several hosts: one answer for all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from comborun.answers.orders import Steered
from comborun.api import joint
from comborun.api.named import Target
from comborun.remote.transport import LocalTransport

if TYPE_CHECKING:
    import pytest


def test_an_order_to_all_that_failed_is_done_though_a_host_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = []
    for name in "xy":
        transport = LocalTransport()
        transport.host = name
        parts.append(Target(transport, "run", f"/{name}"))
    monkeypatch.setattr(joint, "going", lambda _: parts)
    whole = parts[0]._replace(boxes=tuple(parts))

    def act(one: Target, _: tuple[str, ...]) -> Steered:
        return Steered("run", one.transport.host == "y", (f"of {one.transport.host}",), None)

    assert joint.on_each(whole, (), act, some=True).done
    assert joint.on_each(whole, (), act, some=True).lines == ("x: of x", "y: of y")
    assert not joint.on_each(whole, (), act).done
