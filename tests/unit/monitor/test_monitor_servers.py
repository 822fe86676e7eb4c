"""Model servers in the table, in --json and in explain."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from monitor_stage import NOW, a_plan, a_session, a_view, an_answer
from rich.console import Console

from comborun.monitor.answer import Fields, parse_snapshot, server_of
from comborun.monitor.classify import classify
from comborun.monitor.document import to_json
from comborun.monitor.explain import explain, explain_server, server_names
from comborun.monitor.observe import History, fold
from comborun.monitor.status import RunStatus
from comborun.monitor.table import Look, render
from comborun.monitor.wording import server_words
from comborun.servers import Server

LINES = (
    f"server name=vlm attempt=1 state=loading since={NOW - 180} gpus=0,1 port=31337 cause= why=",
    f"server name=pi-gpu0 attempt=2 state=ready since={NOW - 60} gpus=2 port=31338 cause= why=",
    f"server name=pi-gpu1 attempt=3 state=ended since={NOW - 20} gpus= port= cause=signal why=its log says: Killed",
    "waiting session=pi-gpu1 for=gpu_memory until= detail=asks for 8192 MiB",
    "waiting session=grass_flat for=server until= detail=vlm",
)


def seen() -> tuple[RunStatus, str]:
    """The status of a run with servers, and why its session waits."""
    plan = a_plan([a_session("flat", "grass")])
    view = a_view(plan)
    history = fold(History(), parse_snapshot(an_answer(host=LINES)))
    status = classify(view, history)
    return status, "\n".join(explain(view, history, status, "grass_flat").reasons)


def test_the_table_has_a_line_for_each_server() -> None:
    console = Console(width=110, color_system=None)
    with console.capture() as shown:
        console.print(render(seen()[0], Look(110)))
    lines = [line.rstrip() for line in shown.get().splitlines() if line.startswith("server")]
    assert lines == [
        "server  ○ vlm is loading for 3 min  GPU 0,1",
        "server  ● pi-gpu0 is ready for 1 min on port 31338  GPU 2  start 2",
        "server  ! pi-gpu1 has ended 20 s ago (signal: its log says: Killed)  start 3  waits: asks for 8192 MiB",
    ]


def test_json_has_them_with_what_is_known() -> None:
    first, _, last = json.loads(to_json(seen()[0]))["servers"]
    assert first == {
        "name": "vlm",
        "state": "loading",
        "attempt": 1,
        "since": NOW - 180,
        "gpus": [0, 1],
        "port": 31337,
        "cause": None,
        "why": None,
        "waits": None,
    }
    assert (last["gpus"], last["cause"], last["waits"]) == ([], "signal", "asks for 8192 MiB")


def test_explain_says_for_how_long_it_has_been_loading() -> None:
    assert "it waits for the server vlm, which is loading for 3 min" in seen()[1]


def test_a_server_explains_itself_and_one_that_halted_the_run_stays_in_the_table() -> None:
    server = Server("vlm", ("serve",), "", None, ())
    plan = replace(a_plan([replace(a_session("flat", "grass"), servers=(("vlm", "d1"),))]), servers=(server,))
    view = a_view(plan)
    ended = (
        f"server name=vlm attempt=2 state=ended since={NOW - 20} gpus= port= cause=timed_out why=not ready within 3 s"
    )
    hold = f"hold kind=halted at={NOW} why=the server vlm ended 2 times in a row (not ready within 3 s)"
    history = fold(History(), parse_snapshot(an_answer(host=(hold, ended), dispatcher=None)))
    status = classify(view, history)
    told = explain_server(view, status, "vlm")
    assert (server_names(plan), told.state, told.attempt) == (("vlm",), "ended", 2)
    assert told.reasons[1] == "it has ended 20 s ago (timed_out: not ready within 3 s)"
    assert "1 session of the run asks it" in told.reasons
    assert [one.words.split()[0] for one in told.commands] == ["resume", "logs"]
    console = Console(width=110, color_system=None)
    with console.capture() as shown:
        console.print(render(status, Look(110)))
    assert "server  ! vlm has ended" in shown.get()


HOSTILE = {"name": "x", "state": "\x1b[2J", "since": "soon", "gpus": "a,b", "port": "x", "why": "\x07"}


@pytest.mark.parametrize("told", [{}, {"name": "x"}, HOSTILE, dict.fromkeys(HOSTILE, "7\t")])
def test_whatever_the_probe_says_of_a_server_can_be_shown(told: dict[str, object]) -> None:
    one = server_of(Fields(told))
    assert (one.attempt, one.since, one.port) == (0, None, None)
    assert "\x1b" not in server_words(one, NOW)
