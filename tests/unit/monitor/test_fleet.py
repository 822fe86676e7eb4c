"""The runs on all hosts, as the hosts answer."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from comborun.cli.runs import print_new
from comborun.errors import HostError, RunGoneError, UserError
from comborun.monitor import fleet as fleet_module
from comborun.monitor.fleet import Fleet, FleetRow, answer, together
from comborun.monitor.fleet_table import complaints, table
from comborun.remote.launches import Launch, remember
from comborun.remote.runs import GpuUser, Run

RUN = Run("maze-20260102T000000Z-00aa", "/r/maze-20260102T000000Z-00aa", {"succeeded": "2", "at": "1767312001"})
NOW = 1_767_400_000.0
GOING = {
    "finished": False,
    "seconds": 7200.0,
    "abandoned": False,
    "episodes_done": 7632,
    "episodes_planned": 12000,
    "ahead": 0.0,
    "estimated_end_range": [NOW + 3600, NOW + 5000, NOW + 7200],
    "gpus": [0, 1, 2, 5],
    "counts": {"failed": 5, "running": 8, "queued": 20, "succeeded": 26},
    "smoke": {},
}


class Host:
    """A transport with nothing but a name."""

    def __init__(self, host: str) -> None:
        self.host = host

    def run(self, *_: object, **__: object) -> Any:
        raise AssertionError("no run goes on")


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(fleet_module, "PATIENCE_S", 0.2)
    monkeypatch.setattr(fleet_module, "ENOUGH_S", 0.4)
    return tmp_path


@pytest.fixture
def frozen() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


Look = Callable[[Any], tuple[tuple[Run, ...], tuple[GpuUser, ...]]]


def of(look: Look, *hosts: str, again_s: float | None = None) -> Fleet:
    return Fleet({host: Host(host) for host in hosts}, look, again_s)


def until(fleet: Fleet, true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not true():
        assert time.monotonic() < deadline
        fleet.wait(0.05)


def test_a_frozen_host_is_shown_as_last_seen_and_no_other_waits_for_it(frozen: threading.Event) -> None:
    def look(transport: Any) -> tuple[tuple[Run, ...], tuple[GpuUser, ...]]:
        if transport.host == "frozen" and not frozen.wait(20):
            raise AssertionError
        return (replace(RUN, id=f"{transport.host}-20260102T000000Z-00aa"),), ()

    frozen.set()
    first = of(look, "frozen", "h100")
    until(first, lambda: first.answered)
    first.close()
    frozen.clear()
    begun, fleet = time.monotonic(), of(look, "frozen", "h100")
    until(fleet, lambda: bool(fleet.rows()))
    assert [(row.host, row.age) for row in fleet.rows()] == [("h100", None)]
    until(fleet, lambda: len(fleet.rows()) == 2)
    assert 0.15 < time.monotonic() - begun < 2
    (late,) = [row for row in fleet.rows() if row.host == "frozen"]
    assert late.run.id == "frozen-20260102T000000Z-00aa"
    assert late.age is not None
    assert (fleet.answered, answer(late).reachable) == (False, False)
    frozen.set()
    until(fleet, lambda: fleet.answered)
    assert [row.age for row in fleet.rows()] == [None, None]


@pytest.mark.parametrize("why", ["another answers", "it is alone", "it is watched", "a password is typed"])
def test_whoever_asks_once_does_not_wait_long_for_a_frozen_host(why: str, frozen: threading.Event) -> None:
    def look(transport: Any) -> tuple[tuple[Run, ...], tuple[GpuUser, ...]]:
        if transport.host == "frozen" and not frozen.wait(20):
            raise AssertionError
        return (), ()

    frozen.clear()
    others = () if why == "it is alone" else ("h100",)
    fleet = of(look, "frozen", *others, again_s=20 if why == "it is watched" else None)
    if why == "a password is typed":
        fleet._transports["frozen"].asking = True  # type: ignore[attr-defined]
    if others:
        until(fleet, lambda: bool(fleet.listings()))
        assert not fleet.over
    until(fleet, lambda: fleet._clock.elapsed() > fleet._hosts["frozen"].asked + 0.5)  # type: ignore[operator]
    assert (fleet.answered, fleet.late) == (False, ("frozen",))
    assert fleet.over == (why == "another answers")
    waits = "! frozen: no answer yet; `combo runs --host frozen` waits for it"
    assert (waits in complaints(fleet)) == fleet.over
    frozen.set()
    until(fleet, lambda: fleet.answered)
    assert (fleet.over, fleet.late) == (True, ())


def test_in_a_pipe_a_run_is_one_row_though_its_host_answers_late(
    frozen: threading.Event, capsys: pytest.CaptureFixture[str]
) -> None:
    states = [{"succeeded": "1", "at": "1767312001"}, {"succeeded": "2", "at": "1767312001"}]

    def look(transport: Any) -> tuple[tuple[Run, ...], tuple[GpuUser, ...]]:
        if transport.host == "frozen" and not frozen.wait(20):
            raise AssertionError
        changes, stays = (f"{name}-20260102T000000Z-00aa" for name in ("changes", "stays"))
        return (replace(RUN, id=changes, done=states[0]), replace(RUN, id=stays)), ()

    frozen.set()
    first = of(look, "frozen")
    until(first, lambda: first.answered)
    first.close()
    frozen.clear()
    fleet = of(look, "frozen")
    until(fleet, lambda: len(fleet.rows()) == 2)
    shown = print_new(fleet, {})
    assert len(shown) == 2
    del states[0]
    frozen.set()
    until(fleet, lambda: fleet.answered)
    print_new(fleet, shown, last=True)
    printed = capsys.readouterr()
    assert printed.out.count("changes") == printed.out.count("stays") == 1
    assert printed.err.splitlines() == ["changes-20260102T000000Z-00aa on frozen has answered: 2 succeeded"]


def test_in_a_pipe_the_columns_of_all_hosts_line_up(
    frozen: threading.Event, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def look(transport: Any) -> tuple[tuple[Run, ...], tuple[GpuUser, ...]]:
        if transport.host == "frozen" and not frozen.wait(20):
            raise AssertionError
        name = f"{transport.host * 3}-20260102T000000Z-00aa"
        return (replace(RUN, id=name, done=RUN.done if transport.host == "a" else {}),), ()

    monkeypatch.setattr(fleet_module, "_now", lambda *_: GOING)
    frozen.set()
    first = of(look, "frozen", "a")
    until(first, lambda: first.answered)
    first.close()
    frozen.clear()
    fleet = of(look, "frozen", "a")
    until(fleet, lambda: bool(fleet.rows()))
    shown = print_new(fleet, {})
    frozen.set()
    until(fleet, lambda: fleet.answered)
    print_new(fleet, shown, last=True)
    head, *lines = capsys.readouterr().out.splitlines()
    assert [line.index(word) for line, word in zip(lines, ("2 succeeded", "5 failed"), strict=True)] == [
        head.index("state")
    ] * 2
    assert head.split() == ["run", "host", "done", "ends", "gpus", "others", "started", "ran", "state"]


def test_a_host_that_can_not_be_reached_keeps_what_was_seen_and_the_launches_since() -> None:
    gone = False

    def look(transport: Any) -> tuple[tuple[Run, ...], tuple[GpuUser, ...]]:
        if gone:
            raise HostError(f"{transport.host} can't be reached", "is it on?")
        return (RUN,), (GpuUser(0, "ann", "python", 20000),)

    first = of(look, "h100")
    until(first, lambda: first.answered)
    first.close()
    since = "field-20990102T000000Z-00ab"
    remember(Launch(since, "h100", "/r", f"/r/{since}", "field"))
    gone = True
    fleet = of(look, "h100", "h200")
    until(fleet, lambda: fleet.answered)
    seen = {row.run.id: row for row in fleet.rows()}
    assert set(seen) == {RUN.id, since}
    assert "can't be reached (is it on?)" in seen[RUN.id].complaint
    assert seen[RUN.id].users == (GpuUser(0, "ann", "python", 20000),)
    assert seen[since].age is None, "nobody has seen it"


@pytest.mark.parametrize(
    ("error", "known"), [(HostError("no answer"), True), (RunGoneError("gone"), False), (UserError("too old"), False)]
)
def test_a_host_that_freezes_between_its_list_and_a_run_has_not_answered(
    monkeypatch: pytest.MonkeyPatch, error: UserError, known: bool
) -> None:
    going = replace(RUN, done={})

    def of_now(*_: object) -> dict[str, Any]:
        return GOING

    def load(*_: object) -> Any:
        raise error

    with monkeypatch.context() as before:
        before.setattr(fleet_module, "_now", of_now)
        first = of(lambda _: ((going,), ()), "h100")
        until(first, lambda: first.answered)
        first.close()
    monkeypatch.setattr(fleet_module, "_view", load)
    fleet = of(lambda _: ((going,), ()), "h100")
    until(fleet, lambda: fleet.answered)
    (row,) = fleet.rows()
    assert (row.age is not None, row.done) == ((True, 7632) if known else (False, None))


def test_this_machine_is_looked_at_before_there_are_other_threads() -> None:
    """It forks, and a fork beside threads may hang; a view that lasts does not fork at all."""
    threads: dict[str, tuple[int, object]] = {}

    def look(transport: Any) -> tuple[tuple[Run, ...], tuple[GpuUser, ...]]:
        threads[transport.host] = threading.active_count(), getattr(transport, "forks", None)
        return (), ()

    before = threading.active_count()
    once = of(look, "h100", "local")
    until(once, lambda: once.answered)
    assert threads["local"] == (before, None)
    lasting = of(look, "h100", "local", again_s=0.05)
    until(lasting, lambda: lasting.answered)
    assert threads["local"][1] is False
    lasting.close()


def test_hosts_are_asked_again_and_their_times_are_ours() -> None:
    looks: dict[str, int] = {}

    def look(transport: Any) -> tuple[tuple[Run, ...], tuple[GpuUser, ...]]:
        looks[transport.host] = looks.get(transport.host, 0) + 1
        return (RUN,), ()

    fleet = of(look, "h100", again_s=0.02)
    until(fleet, lambda: looks.get("h100", 0) > 3)
    fleet.close()
    ahead = FleetRow("h100", Run(RUN.id, RUN.directory, {}, now={**GOING, "ahead": 600.0}), ahead=600.0)
    assert ahead.started == ahead.run.started - 600
    assert ahead.expected is not None
    assert ahead.expected.earliest == NOW + 3000


ROWS = (
    FleetRow(
        "h100",
        Run("4_env_test_with_a_long_name-20260729T101500Z-ab12", "/r/x", {}, now=GOING),
        users=(
            GpuUser(0, "ann", "python", 20480),
            GpuUser(1, "me", "python", 9000, "4_env_test_with_a_long_name-20260729T101500Z-ab12"),
            GpuUser(1, "me", "python", 4096, "field-20260729T101500Z-00ff"),
        ),
    ),
    FleetRow("5090-box.lab.example.org", RUN, 180.0, "no answer"),
)


@pytest.mark.parametrize("width", [160, 120, 80, 60, 40])
def test_a_row_fits_and_still_names_its_run(width: int) -> None:
    lines = [line.plain for line in table(ROWS, width, NOW)]
    assert max(map(cell_len, lines)) <= width
    assert len(lines) == 3
    for line, name in zip(lines[1:], ("ab12", "00aa"), strict=True):
        assert name in line
    if width >= 80:
        assert "7632/12000" in lines[1]
        assert "0-2,5" in lines[1]
        assert "ann 20" in lines[1]
        assert "●8" in lines[1] or "8 running" in lines[1]
        assert "…" not in f"{lines[0]}{lines[1][26:]}", "nothing but a long name is cut"
        assert "3 min ago" in lines[2]


def test_a_pipe_gets_whole_names_and_a_short_screen_the_runs_that_go_on() -> None:
    lines = [line.plain for line in table(ROWS, None, NOW)]
    assert ROWS[0].run.id in lines[1]
    assert "5090-box.lab.example.org" in lines[2]
    assert "ann 20.0 GiB, field 4.00 GiB" in lines[1]
    many = [*(FleetRow("h", replace(RUN, id=f"a-20260102T000000Z-{n:04x}")) for n in range(30)), ROWS[0]]
    short = [line.plain for line in table(many, 80, NOW, 10)]
    assert "ab12" in short[1]
    assert (len(short), short[-1]) == (10, "and 23 more")


def test_a_run_that_has_no_session_yet_says_so_and_only_an_unseen_one_is_not_known() -> None:
    assert fleet_module.state(Run(RUN.id, RUN.directory, {}, now={**GOING, "counts": {}})) == "no session yet"
    assert fleet_module.state(Run(RUN.id, RUN.directory, {})) == "not known"


def part(host: str, counts: dict[str, int], done: int, *, lost: tuple[str, ...] = (), over: bool = False) -> FleetRow:
    """A part of a run of 12 sessions of 10 episodes on three hosts."""
    planned = 10 * sum(counts.values())
    of = {"grid_run": "6c1", "box": host, "hosts": ["alpha", "beta", "gamma"], "lost": lost}
    if lost:
        of["kept"] = {"succeeded": 1, "episodes": 10}
    ended = {**{word: str(count) for word, count in counts.items()}, "at": "1767312001"}
    ended |= {"records": str(done), "planned": str(planned)}
    going = {**GOING, "episodes_done": done, "episodes_planned": planned, "counts": counts, "gpus": [0]}
    name = f"kitchen-20260102T000000Z-{host[0] * 4}"
    return FleetRow(host, Run(name, f"/r/{name}", ended if over else {}, now={} if over else going, part=of))


def test_a_run_on_several_hosts_is_one_row_with_the_sums_of_its_parts() -> None:
    gamma, alpha, beta = (
        part("gamma", {"failed": 1, "succeeded": 3}, 34, over=True),
        part("alpha", {"succeeded": 4}, 40, over=True),
        part("beta", {"running": 1, "succeeded": 3}, 30),
    )
    (row,) = together([gamma, alpha, beta])
    assert (row.run.id, row.host) == (alpha.run.id, "alpha, beta, gamma")
    assert (row.done, row.planned, row.run.finished) == (104, 120, False)
    assert row.state == "1 running, 10 succeeded, 1 failed"
    assert "beta 0" in table([row], 160, NOW)[1].plain
    told = answer(row)
    assert [(one.host, one.counts) for one in told.parts] == [
        ("alpha", {"succeeded": 4}),
        ("beta", {"running": 1, "succeeded": 3}),
        ("gamma", {"succeeded": 3, "failed": 1}),
    ]
    (alone,) = together([beta])
    assert alone.state == "beta's part of a run on alpha, beta, gamma: 1 running, 3 succeeded"
    held = beta._replace(run=replace(beta.run, held={"kind": "paused", "why": ""}))
    assert together([alpha, held])[0].state.startswith("paused: ")
    both = together([held, part("gamma", {"running": 4}, 0)])[0]
    assert both.state.startswith("paused on beta: "), "the others go on"
    assert answer(both).hold is None


def test_of_a_host_that_was_given_up_counts_what_the_others_say() -> None:
    gone = part("beta", {"running": 3, "succeeded": 1}, 15)._replace(complaint="no answer", age=60.0)
    lost = [
        part(host, {"succeeded": count}, 10 * count, lost=("beta",), over=True)
        for host, count in (("alpha", 6), ("gamma", 5))
    ]
    (row,) = together([*lost, gone])
    assert (row.state, row.done, row.planned, row.run.finished, row.complaint) == ("12 succeeded", 120, 120, True, "")
