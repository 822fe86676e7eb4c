"""Orders to several hosts at the same time."""

from __future__ import annotations

from threading import Barrier, Event

import pytest

from comborun.errors import HostError, UserError
from comborun.remote import boxes
from comborun.remote.boxes import at_once


def test_all_hosts_get_their_orders_at_the_same_time_and_the_answers_are_in_order() -> None:
    both = Barrier(2, timeout=20)

    def refuse() -> int:
        raise UserError("no")

    found = at_once({"b": both.wait, "a": both.wait, "c": refuse})
    assert list(found.done) == ["b", "a"]
    assert found.failed["c"].message == "no"
    with pytest.raises(ZeroDivisionError):
        at_once({"a": lambda: 1 // 0})


def test_of_a_host_that_may_be_gone_not_much_time_is_spent_on_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boxes, "HURRY_S", 0.05)
    thawed, typed = Event(), Event()

    def frozen() -> str:
        assert thawed.wait(20)
        return "late"

    try:
        found = at_once({"frozen": frozen, "a": lambda: "here"}, ["frozen"])
        assert found.done == {"a": "here"}
        assert isinstance(found.failed["frozen"], HostError)
        slow = at_once({"frozen": lambda: "late", "a": lambda: str(Event().wait(0.2))}, ["frozen"])
        assert slow.done == {"frozen": "late", "a": "False"}, "the others have their time"

        def asking() -> bool:
            thawed.set()  # what was typed lets it in
            return not typed.is_set()

        assert at_once({"frozen": frozen, "a": lambda: "here"}, ["frozen"], asking).done["frozen"] == "late"
    finally:
        thawed.set()
