"""Looks at several hosts: a frozen one holds up none of the others, and what it answers later is not lost."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from threading import Event, Timer

import pytest

from comborun.api.late_looks import LateError, LateLooks
from comborun.errors import HostError
from comborun.monitor.watch import Clock

FROZEN_S = 20


class Hosts:
    def __init__(self, *names: str, patience: float = 0.0) -> None:
        self.free = {name: Event() for name in names}
        self.asked = dict.fromkeys(names, 0)
        self.refuses, self.asking = False, False
        asks = {name: partial(self._answer, name) for name in names}
        self.looks = LateLooks(asks, Clock(), lambda: self.asking and len(self.looks._found) < 2, patience)

    def _answer(self, name: str) -> str:
        self.asked[name] += 1
        assert self.free[name].wait(FROZEN_S)
        if self.refuses:
            raise HostError("refused")
        return f"{name} {self.asked[name]}"

    def round(self) -> tuple[dict[str, object], dict[str, object]]:
        return dict(self.looks.begin()), dict(self.looks.end())

    def until_over(self, name: str) -> None:
        with self.looks._news:
            assert self.looks._news.wait_for(lambda: name in self.looks._found, FROZEN_S)


def test_nobody_waits_for_a_frozen_host_whose_look_goes_on_and_counts_when_it_comes() -> None:
    hosts = Hosts("fast", "frozen")
    hosts.free["fast"].set()
    for number in (1, 2):
        late, found = hosts.round()
        assert (late, found["fast"]) == ({}, f"fast {number}")
        assert isinstance(found["frozen"], LateError)
        hosts.looks._patience["frozen"] = FROZEN_S  # its look began in the round before
    assert hosts.asked["frozen"] == 1, "it is not asked again while it is asked"
    hosts.free["frozen"].set()
    hosts.until_over("frozen")
    assert 0 < hosts.looks._patience["fast"] < 1, "it has the time that it took"
    late, found = hosts.round()
    assert (late, found) == ({"frozen": "frozen 1"}, {"fast": "fast 3", "frozen": "frozen 2"})


def test_nobody_waits_long_for_a_host_of_which_another_says_that_it_was_given_up() -> None:
    said = list[list[str]]()
    thawed = Event()
    asks = {"fast": lambda: "fast", "frozen": lambda: str(thawed.wait(FROZEN_S))}

    def gone(answers: Iterable[str]) -> list[str]:
        said.append([*answers])
        return ["frozen"] if said[-1] else []

    looks = LateLooks(asks, Clock(), lambda: False, 0.05, gone)
    looks.begin()
    found = looks.end(FROZEN_S)
    thawed.set()
    assert (found["fast"], type(found["frozen"])) == ("fast", LateError)
    assert said[-1] == ["fast"]


def test_what_looks_once_leaves_time_for_a_login() -> None:
    hosts = Hosts("fast", "far")
    hosts.free["fast"].set()
    hosts.looks.begin()
    hosts.until_over("fast")
    Timer(0.05, hosts.free["far"].set).start()
    assert hosts.looks.end(FROZEN_S)["far"] == "far 1"


@pytest.mark.parametrize("why", ["refused", "asking"])
def test_all_are_waited_for_while_none_has_answered_or_the_user_types_a_password(
    why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts = Hosts("one", "two")
    hosts.refuses, hosts.asking = why == "refused", why == "asking"
    hosts.free["one"].set()
    news, go_on = hosts.looks._news, hosts.looks._news.wait

    def waits(seconds: float | None) -> bool:
        if "one" in hosts.looks._found:
            hosts.free["two"].set()
        return go_on(seconds)

    monkeypatch.setattr(news, "wait", waits)
    found = hosts.round()[1]
    assert not any(isinstance(one, LateError) for one in found.values())
    assert all(isinstance(one, HostError) is hosts.refuses for one in found.values())


def test_what_is_no_answer_of_a_host_is_raised() -> None:
    looks = LateLooks({"one": lambda: 1 / 0}, Clock(), lambda: False)
    looks.begin()
    with pytest.raises(ZeroDivisionError):
        looks.end()
