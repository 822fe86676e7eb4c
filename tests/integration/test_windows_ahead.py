"""Windows that the dispatcher opens ahead of a free slot, and the supervisors that wait for it there."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from box import Box, Script, alive, bash, frozen, kill, until
from traces import HOLD, NAMES, STARTED, starts

from comborun.model.judging import EvidenceRules
from comborun.rules.records import parse


def waiting(box: Box, count: int) -> None:
    """Return when so many windows wait for a slot, beside those of the sessions that run."""
    until(lambda: len(waiters(box)) == count, f"{count} windows wait")


def waiters(box: Box) -> list[int]:
    """The windows that wait for a slot."""
    window = f"{box.directory}/lib/window.sh"
    return [pid for pid, words in commands() if words[2:3] == [window] and Path(words[3]).exists()]


def armed(box: Box, name: str) -> int:
    """The supervisor of a session that waits for its slot, once it is there."""
    found: list[int] = []

    def there() -> bool:
        words = [f"{box.directory}/lib/comborun_host", "session", name, "1"]
        found[:] = [pid for pid, seen in commands() if seen[1:5] == words and alive(pid)]
        return bool(found)

    until(there, f"a supervisor waits to start {name}")
    assert not (box.attempt(name) / "claim").exists()
    return found[0]


def commands() -> list[tuple[int, list[str]]]:
    """The processes of this machine: pid and command line."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found.append((int(file.parent.name), file.read_text(errors="replace").split("\0")))
    return found


def one_runs(box: Box, *scripts: Script) -> None:
    """One slot: the first session has it, and the second one's supervisor waits."""
    box.plan(dict(zip(NAMES, scripts or [bash(STARTED + HOLD)] * 3, strict=False)), parallel=1)
    box.start()
    until(lambda: starts(box, NAMES[0]) == ["1"], "the first runs")


def ends_well(box: Box) -> None:
    """Each session runs once, in its first attempt, and no start was a failure."""
    box.write("go", "")
    box.await_done()
    assert [starts(box, name) for name in box.names] == [["1"]] * len(box.names)
    assert box.told("^not_begun") == []


def test_a_window_that_waits_for_a_slot_is_no_attempt_yet(any_box: Box) -> None:
    any_box.plan({name: bash(STARTED + HOLD) for name in NAMES}, parallel=2)
    any_box.start()
    waiting(any_box, 2)
    assert len(any_box.told("^granted")) == 2
    assert not any((any_box.attempt(name) / "claim").exists() for name in NAMES[2:])
    seen = any_box.look()["attempts"]
    assert [(one["session"], one["number"]) for one in seen] == [("env_p0", 1), ("env_p1", 1)]
    any_box.write("go", "")
    any_box.await_done()
    assert all(starts(any_box, name) == ["1"] for name in NAMES)


def test_a_window_that_was_taken_is_replaced(usual_box: Box) -> None:
    names = [f"env_p{number}" for number in range(5)]
    first, other = HOLD.replace("/go", "/first"), HOLD
    usual_box.plan({name: bash(STARTED + (first if name == names[0] else other)) for name in names}, parallel=2)
    usual_box.start()
    waiting(usual_box, 2)
    usual_box.write("first", "")
    until(lambda: starts(usual_box, names[2]) == ["1"], "the third has the slot of the first")
    waiting(usual_box, 2)
    usual_box.write("go", "")
    usual_box.await_done()
    assert all(starts(usual_box, name) == ["1"] for name in names)


def test_a_window_that_begins_is_not_refused_with_another_of_its_call(box: Box) -> None:
    late = f"until [[ -e {box.directory}/said ]]; do sleep 0.1; done; exit 1"
    tmux = box.stand_in("tmux", f'{shutil.which("tmux")} "$@" || {{ {late}; }}')  # it says late that a call failed
    box.environment["COMBORUN_LAUNCH_S"] = "120"
    taken = f"{NAMES[3]}_{box.id[-4:]}"
    assert box.tmux("new-session", "-d", "-s", taken, "sleep", "60").returncode == 0
    first = bash(STARTED + HOLD.replace("/go", "/first"))
    box.plan({name: first if name == NAMES[0] else bash(STARTED + HOLD) for name in NAMES[:4]}, parallel=2)
    box.start()
    pid = armed(box, NAMES[2])
    kill(pid, signal.SIGSTOP)
    box.write("first", "")
    until(lambda: box.told(f"^granted {NAMES[2]}"), "it has its word")
    box.tmux("kill-session", "-t", f"={taken}")
    box.write("said", "")
    until(lambda: not any(str(tmux) in words for _, words in commands()), "the call has failed")
    kill(pid, signal.SIGCONT)
    ends_well(box)


def test_a_fifo_in_the_way_of_a_window_is_in_the_way_of_no_later_one(box: Box) -> None:
    one_runs(box)
    armed(box, NAMES[1])
    (last,) = box.directory.glob("dispatch/window-*")
    name, _, number = last.name.rpartition("-")
    os.mkfifo(last.with_name(f"{name}-{int(number) + 1}"))  # as is left by one that could not be opened
    box.write("go", "")
    box.await_done()
    assert all(starts(box, name) == ["1"] for name in box.names)


def test_what_waits_leaves_with_its_dispatcher_and_the_next_one_goes_on(box: Box) -> None:
    box.plan({name: bash(STARTED + HOLD) for name in NAMES}, parallel=2)
    box.start()
    for end in (box.kill_dispatcher, lambda: kill(box.dispatcher, signal.SIGTERM)):
        waiting(box, 2)
        supervisors = [armed(box, name) for name in NAMES[2:4]]
        end()
        waiting(box, 0)
        until(lambda pids=supervisors: not any(map(alive, pids)), "its supervisors leave")
        box.start()
    assert len(box.told("^granted")) == 2
    ends_well(box)


def test_a_supervisor_that_waits_and_is_killed_is_no_attempt_and_another_one_waits(box: Box) -> None:
    one_runs(box)
    first = armed(box, NAMES[1])
    kill(first, signal.SIGKILL)
    until(lambda: not alive(first), "it is gone")
    assert armed(box, NAMES[1]) != first
    ends_well(box)


def test_a_supervisor_that_is_killed_between_its_grant_and_its_claim_is_replaced_at_once(usual_box: Box) -> None:
    usual_box.environment["COMBORUN_LAUNCH_S"] = "120"
    one_runs(usual_box)
    pid = armed(usual_box, NAMES[1])
    kill(pid, signal.SIGSTOP)
    usual_box.write("go", "")
    until(lambda: usual_box.told(f"^granted {NAMES[1]}"), "it has its grant, and can't claim")
    kill(pid, signal.SIGKILL)
    usual_box.await_done()
    assert [starts(usual_box, name) for name in NAMES[:3]] == [["1"]] * 3
    assert usual_box.done["succeeded"] == "3"


def test_a_supervisor_that_is_stopped_between_its_grant_and_its_claim_is_replaced(usual_box: Box) -> None:
    usual_box.environment["COMBORUN_LAUNCH_S"] = "2"
    one_runs(usual_box)
    pid = armed(usual_box, NAMES[1])
    kill(pid, signal.SIGSTOP)
    usual_box.write("go", "")
    usual_box.await_done()
    assert [starts(usual_box, name) for name in NAMES[:3]] == [["1"]] * 3
    assert not alive(pid)
    until(lambda: not usual_box.windows(), "no window is left")


def test_the_end_of_the_multiplexer_costs_what_waits_nothing(any_box: Box) -> None:
    held = bash(STARTED + 'until [[ -e "$COMBORUN_RUN_DIR/end" ]]; do sleep 0.1; done')
    one_runs(any_box, bash(STARTED + HOLD), held)
    armed(any_box, NAMES[1])
    gone = any_box.servers()
    assert gone
    for pid in gone:
        kill(pid, signal.SIGKILL)
    until(lambda: not any(map(alive, gone)), "all windows are gone")
    any_box.write("go", "")
    assert any_box.shown.shows(any_box.begun(NAMES[1]).address), "it has a window"
    any_box.write("end", "")
    ends_well(any_box)


def test_a_stop_ends_what_waits_also_while_a_signal_holds_it(box: Box) -> None:
    one_runs(box)
    pid = armed(box, NAMES[1])
    kill(pid, signal.SIGSTOP)
    assert box.stop().returncode == 0
    until(lambda: not alive(pid) and not box.dispatcher_lives, "it leaves, as the dispatcher does")
    waiting(box, 0)
    assert [starts(box, name) for name in NAMES[:3]] == [["1"], [], []]
    assert not (box.attempt(NAMES[1]) / "claim").exists() or box.end(NAMES[1])


def test_what_waits_ends_with_its_dispatcher_also_while_a_signal_holds_it(box: Box) -> None:
    one_runs(box)
    pid = armed(box, NAMES[1])
    kill(pid, signal.SIGSTOP)
    kill(box.dispatcher, signal.SIGKILL)
    until(lambda: not alive(pid), "it is gone")
    box.start()
    ends_well(box)


def test_what_waits_makes_room_on_a_machine_that_starts_no_more_processes(box: Box) -> None:
    group = Path(f"/sys/fs/cgroup/pids/{box.id}")
    try:
        group.mkdir()
    except OSError:
        pytest.skip("only root can limit processes, and only where there is a pids cgroup")
    first = HOLD.replace("/go", "/first")
    box.plan({name: bash(STARTED + (first if name == NAMES[0] else HOLD)) for name in NAMES[:4]}, parallel=2)
    box.start()
    pids = [armed(box, name) for name in NAMES[2:4]]
    try:
        for pid in (box.dispatcher, *pids):
            (group / "cgroup.procs").write_text(str(pid))
        (group / "pids.max").write_text("3")
        box.write("first", "")
        until(lambda: box.told("^no_room"), "the third session can't start its command")
        (group / "pids.max").write_text("5")  # enough for a session, if nothing else is there
        until(lambda: starts(box, NAMES[2]) == ["1"], "it starts")
    finally:
        (group / "pids.max").write_text("max")
        box.stop()


def test_what_was_amended_while_its_supervisor_waited_runs_as_amended(box: Box) -> None:
    one_runs(box, *[bash(STARTED + HOLD), bash("echo old; exit 3", results=("old.jsonl",))])
    armed(box, NAMES[1])
    new = bash(STARTED + "echo new", results=("new.jsonl",), more={"evidence": EvidenceRules(records=False)})
    folder = box.directory / "sessions" / NAMES[1]
    for name, text in (("session.sh", new.text(NAMES[1])), ("session.json", new.session_json(NAMES[1]))):
        box.write("new", text).replace(folder / name)
    ends_well(box)
    assert box.log(NAMES[1]) == "new\n"
    assert parse((box.attempt(NAMES[1]) / "claim").read_text())["judging"]["results"] == {"files": ["new.jsonl"]}


def test_a_pkill_python_spares_dispatcher_and_supervisors(box: Box) -> None:
    one_runs(box)
    ours = {box.dispatcher, box.begun(NAMES[0]).supervisor, armed(box, NAMES[1])}
    asked = subprocess.run(["pgrep", "python"], capture_output=True, text=True, check=False)
    assert not ours & set(map(int, asked.stdout.split()))
    assert {Path(f"/proc/{pid}/comm").read_text() for pid in ours} == {"comborun\n"}
    ends_well(box)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP, signal.SIGKILL])
def test_a_window_that_waits_and_is_closed_costs_its_session_nothing(box: Box, number: signal.Signals) -> None:
    one_runs(box)
    waiting(box, 1)
    windows = waiters(box)
    for pid in windows:
        kill(pid, number)
    until(lambda: not any(map(alive, windows)), "they are closed; one that gets its session first hands it the Ctrl-C")
    ends_well(box)


def test_a_window_that_is_frozen_holds_up_no_session(box: Box) -> None:
    one_runs(box)
    waiting(box, 1)
    pane = ("capture-pane", "-p", "-t", f"={NAMES[1]}_{box.id[-4:]}:")
    until(lambda: "waits for a free slot" in box.tmux(*pane).stdout, "it says what it waits for")
    (still,) = waiters(box)
    with frozen(still):
        ends_well(box)
        assert f"{NAMES[1]}_{box.id[-4:]}" in box.windows()
    until(lambda: not box.windows(), "it closes, since its supervisor has ended")


def test_a_window_that_closes_slowly_costs_its_session_nothing(box: Box) -> None:
    one_runs(box)
    waiting(box, 1)
    fifo = box.directory / "dispatch/fifo"
    with frozen(*waiters(box)):
        fifo.unlink()
        until(fifo.is_fifo, "the dispatcher listens again, and has closed what waited")
        box.write("go", "")
        until((box.attempt(NAMES[1]) / "grant").exists, "the next one may start")
        time.sleep(0.2)  # tmux has refused a second window of that name
    ends_well(box)


def test_a_window_closes_with_a_supervisor_that_is_killed(any_box: Box) -> None:
    any_box.plan({"env_one": bash(STARTED + HOLD)})
    any_box.start()
    kill(any_box.begun("env_one").supervisor, signal.SIGKILL)
    until(lambda: not any_box.windows(), "its window is closed")


def test_a_queued_session_that_is_stopped_gives_up_its_window(box: Box) -> None:
    one_runs(box)
    pid = armed(box, NAMES[1])
    assert box.stop(NAMES[1]).returncode == 0
    until(lambda: not alive(pid), "its supervisor leaves")
    until(lambda: f"{NAMES[1]}_{box.id[-4:]}" not in box.windows(), "its window is gone")
    box.write("go", "")
    box.await_done()
    assert [starts(box, name) for name in NAMES[:3]] == [["1"], [], ["1"]]
