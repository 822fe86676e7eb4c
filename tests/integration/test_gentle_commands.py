"""Nothing but `combo stop` ends a session: every other command, at once and on a run that is live."""

from __future__ import annotations

from pathlib import Path

import click
from box import alive, until
from desk import Desk, evaluate

from comborun.cli import combo
from comborun.rules.records import parse

GRID = "grid.yaml"
FOLLOWED = '{follow: "~/ckpt_*.pt", done: STABLE}'
CALLS: dict[str, tuple[str, ...]] = {
    "attach": ("maze_good",),
    "calibrate": (GRID, "--most", "1"),
    "check": (GRID,),
    "clean": ("--older", "0", "--yes"),
    "completion": ("bash",),
    "disconnect": (),
    "docs": ("limits.parallel",),
    "doctor": ("--host", "local"),
    "drain": (),
    "recheck": (),
    "explain": ("maze_good",),
    "export": ("compose", GRID),
    "hosts": ("list",),
    "init": (),
    "keep": (),
    "launch": (GRID,),
    "logs": ("maze_good",),
    "mcp": (),
    "monitor": ("--plain", "--interval", "2"),
    "notify": (),
    "pause": (),
    "plan": (GRID,),
    "presets": (),
    "report": (),
    "resume": (),
    "retry": ("maze_good", "maze_poor"),
    "run": (GRID, "--plain", "--interval", "2"),
    "runs": (),
    "schema": (),
    "set": ("parallel=2",),
    "slots": ("1",),
    "status": (),
    "try": (GRID,),
    "view": ("--no-browser", "--interval", "2"),
    "follow": ("follow.yaml",),  # the last: it makes a newer run
}
"""command -> words after which it does what it does"""
WATCHING = ("calibrate", "monitor", "run", "view")
"""they go on until they are interrupted, all at once"""


def processes(run: Path) -> dict[int, str]:
    """pid -> its role, for all that the run's records name."""
    found = {int(parse((run / "dispatch/dispatcher").read_text())["pid"]): "dispatcher"}
    for path in run.glob("sessions/*/attempt-*/begin"):
        record = parse(path.read_text())
        found |= {int(record[role]): f"{role} of {path.parts[-3]}" for role in ("supervisor", "pid")}
    return found


def test_no_command_but_stop_ends_anything(desk: Desk) -> None:
    gate = desk.home / "gate"
    waits = f"sh -c 'until [ -e \"$1\" ]; do sleep 1; done; shift; exec \"$@\"' x '{gate}'"
    desk.grid("follow.yaml", name="followed", policies=FOLLOWED)
    grid = desk.grid(GRID, command=f"{waits} {evaluate()}", limits="{parallel: 2}")
    assert set(CALLS) == set(combo.list_commands(click.Context(combo))) - {"stop"}, (
        "a new command says here how it is called"
    )
    assert desk.combo("launch", grid).returncode == 0
    until(lambda: len(desk.begun) == 2, "two begin")
    run = desk.runs[-1]
    there = processes(run)
    assert len(there) == 5
    calls = {name: desk.start(name, *CALLS[name]) for name in (*WATCHING, "try")}
    said = {name: desk.combo(name, *words, timeout=100).stdout for name, words in CALLS.items() if name not in calls}
    for name in WATCHING:
        until(lambda name=name: "\n" in calls[name].text, f"{name} shows something")
    for one in calls.values():
        one.interrupt()
    said |= {name: f"{one.code()}: {one.text}" for name, one in calls.items()}
    assert not [role for pid, role in there.items() if not alive(pid)], said
    assert processes(run) == there
    assert list(run.glob("sessions/*/attempt-*/end")) == []
    gate.touch()
