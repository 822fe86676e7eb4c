"""The faults: each a function of the bed, the fault and the scene that hits something, if there is something to hit."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from bed import Bed, Process, can_mount, command_line, kill_all, send
from scene import GROWN, Fault, Scene

from comborun.rules import records

Thing = TypeVar("Thing")
Act = Callable[[Bed, Fault], bool]
"""whether something was hit"""
ANOTHER_BOOT = "00000000-0000-4000-8000-000000000000"


def pick(things: Sequence[Thing], draw: float) -> Thing | None:
    return things[int(draw * len(things))] if things else None


def _hit(process: Process | None, number: int = signal.SIGKILL) -> bool:
    if process is None or not process.lives:
        return False
    process.signal(number)
    return True


def commands(bed: Bed) -> list[Process]:
    return bed.living("pid")


def supervisors(bed: Bed) -> list[Process]:
    return bed.living("supervisor")


def dispatchers(bed: Bed) -> list[Process]:
    return [one for one in [bed.dispatcher] if one.lives]


def one_of(which: Callable[[Bed], Sequence[Process]], number: int = signal.SIGKILL) -> Act:
    """A signal to one of these processes."""
    return lambda bed, fault: _hit(pick(which(bed), fault.draw), number)


def windows_killed(bed: Bed, _: Fault) -> bool:
    """The tmux server, or every screen."""
    hits = [_hit(server) for server in bed.servers]
    return any(hits)


def window_closed(bed: Bed, fault: Fault) -> bool:
    """By somebody who takes it for the way to end a session."""
    if bed.multiplexer == "screen":
        return _hit(pick(bed.servers, fault.draw), signal.SIGTERM)
    name = pick(bed.tmux("list-sessions", "-F", "#{session_name}").split(), fault.draw)
    if name:
        bed.tmux("kill-session", "-t", f"={name}")
    return name is not None


def all_killed(bed: Bed, _: Fault) -> bool:
    found = bool(bed.everything())
    kill_all(bed.everything)
    return found


def power_lost(bed: Bed, fault: Fault) -> bool:
    """As `restarted`, and what the kernel had not written to the disk yet is gone: it may write any file first."""
    if not bed.disk:
        return False
    files = sorted(path for path in (bed.home / "comborun").rglob("*") if path.is_file())
    for path in random.Random(fault.draw).sample(files, len(files) // 2):
        _synced(path)
    seen = bed.disk.snapshot()
    kill_all(bed.everything)
    bed.disk.restore(seen)
    _filler(bed).unlink(missing_ok=True)  # its removal may not have reached the disk
    restarted(bed, fault)
    return True


def _filler(bed: Bed) -> Path:
    """The file of a full disk."""
    return bed.home / "comborun" / ".filler"


def _synced(path: Path) -> None:
    with contextlib.suppress(OSError), path.open("rb") as file:
        os.fsync(file.fileno())


def restarted(bed: Bed, fault: Fault) -> bool:
    """As after a restart of the machine: nothing of it lives, and what is on record is of another boot."""
    all_killed(bed, fault)
    if not bed.run:
        return False
    for pattern in ("sessions/*/attempt-*/begin", "sessions/*/attempt-*/claim", "dispatch/dispatcher"):
        for path in bed.run.glob(pattern):
            _rewrite(path, boot=ANOTHER_BOOT)
    return True


def frozen(bed: Bed, fault: Fault) -> bool:
    """STOP, then CONT, to any process of ours."""
    process = pick([*commands(bed), *supervisors(bed), *dispatchers(bed), *bed.servers], fault.draw)
    if not _hit(process, signal.SIGSTOP):
        return False
    assert process
    try:
        time.sleep(fault.span)
    finally:
        process.signal(signal.SIGCONT)
    return True


def pid_reused(bed: Bed, fault: Fault) -> bool:
    """A session is killed with its supervisor, and its pids are another's now."""
    at = pick(bed.live_attempts, fault.draw)
    if not at:
        return False
    for role in ("supervisor", "pid"):
        bed.named(at, role).signal(signal.SIGKILL)
    for path in (at / "begin", at / "claim"):
        _rewrite(path, pid=bed.bystander.pid, supervisor=bed.bystander.pid)
    return True


def _rewrite(path: Path, **fields: object) -> None:
    """Change fields that a record has; an empty record is left as it is."""
    record = records.parse(path.read_text())
    path.write_text(records.render((key, fields.get(key, value)) for key, value in record.items()))


def run_stopped(bed: Bed, _: Fault) -> bool:
    return bed.run is not None and bed.combo("stop", bed.run.name) == 0


def session_stopped(bed: Bed, fault: Fault) -> bool:
    at = pick(bed.live_attempts, fault.draw)
    return at is not None and bed.run is not None and bed.combo("stop", bed.run.name, at.parent.name) == 0


def _held(verb: str) -> Act:
    def act(bed: Bed, fault: Fault) -> bool:
        if not bed.run or bed.combo(verb, bed.run.name):
            return False
        time.sleep(fault.span)
        return fault.draw < 0.5 or bed.combo("resume", bed.run.name) == 0  # else it stays held, for the end to find

    return act


def _killed(verb: str) -> Act:
    """A command of the user's is killed: here alone, as by a lost link, or with what it has started on the host."""

    def act(bed: Bed, fault: Fault) -> bool:
        session = pick([at.parent.name for at in bed.live_attempts], fault.draw)
        if not bed.run or not session:
            return False
        child = bed.begin(verb, bed.run.name, *([session] if verb == "retry" else []))
        time.sleep(fault.span)
        if fault.draw < 0.5:
            for one in bed.everything():
                if "comborun_host\0" in (words := command_line(one.pid)) and f"\0{verb}\0" in words:
                    one.signal(signal.SIGKILL)
        send(child, signal.SIGKILL)
        return bed.wait(child) == -signal.SIGKILL

    return act


def slots_changed(bed: Bed, fault: Fault) -> bool:
    return bed.run is not None and bed.combo("slots", str(1 + int(4 * fault.draw)), "--run", bed.run.name) == 0


def launched_twice(bed: Bed, _: Fault) -> bool:
    children = [bed.begin(*bed.launch()) for _ in range(2)]
    return [bed.wait(child) for child in children] == [0, 0]


def launch_killed(bed: Bed, fault: Fault) -> bool:
    child = bed.begin(*bed.launch())
    time.sleep(fault.span)
    send(child, signal.SIGKILL)
    return bed.wait(child) == -signal.SIGKILL


def second_dispatcher(bed: Bed, _: Fault) -> bool:
    """Started by hand beside one that lives, which it must not disturb."""
    if not bed.run or not dispatchers(bed):
        return False
    python = (bed.run / "dispatch/python").read_text().strip()
    command = [python, "-I", "-S", str(bed.run / "lib/comborun_host"), "dispatch", str(bed.run)]
    subprocess.run(command, env=bed.environment, capture_output=True, timeout=60, check=False, stdin=subprocess.DEVNULL)
    return True


def socket_removed(bed: Bed, fault: Fault) -> bool:
    """As by a cleaner of /tmp."""
    if bed.multiplexer == "tmux":
        return _removed(Path(f"/tmp/tmux-{os.getuid()}", bed.environment["COMBORUN_TMUX_SOCKET"]))
    return _removed(pick(list(Path(bed.environment["SCREENDIR"]).iterdir()), fault.draw))


def _removed(path: Path | None) -> bool:
    try:
        if path:
            path.unlink()
    except OSError:
        return False
    return path is not None


def disk_full(bed: Bed, fault: Fault) -> bool:
    """Not a byte is left for a moment."""
    filler = _filler(bed)
    try:
        for size in (65536, 512):
            with filler.open("ab", buffering=0) as stream, contextlib.suppress(OSError):
                while stream.write(bytes(size)) == size:
                    pass
        time.sleep(fault.span)
    finally:
        filler.unlink(missing_ok=True)
    return True


FAULTS: dict[str, Act] = {
    "command killed": one_of(commands),
    "supervisor killed": one_of(supervisors),
    "supervisor told to end": one_of(supervisors, signal.SIGTERM),
    "dispatcher killed": one_of(dispatchers),
    "dispatcher told to end": one_of(dispatchers, signal.SIGTERM),
    "windows killed": windows_killed,
    "window closed": window_closed,
    "all killed": all_killed,
    "machine restarted": restarted,
    "process frozen": frozen,
    "pid reused": pid_reused,
    "run stopped": run_stopped,
    "session stopped": session_stopped,
    "run paused": _held("pause"),
    "run drained": _held("drain"),
    "slots changed": slots_changed,
    **{f"{verb} killed": _killed(verb) for verb in ("stop", "retry", "resume", "pause")},
    "launched twice": launched_twice,
    "launch killed": launch_killed,
    "second dispatcher": second_dispatcher,
    "FIFO removed": lambda bed, _: _removed(bed.run / "dispatch/fifo" if bed.run else None),
    "socket removed": socket_removed,
    "disk full": disk_full,
    "power lost": power_lost,
}
OF_A_DISK = ("disk full", "power lost")
"""these need a file system of the run's own"""


def kinds() -> list[str]:
    """The faults that can be made on this machine."""
    return [*(kind for kind in FAULTS if kind not in OF_A_DISK or can_mount()), GROWN]


def grow(bed: Bed, scene: Scene) -> Scene:
    """The scene with more episodes, once the host has taken the grid."""
    grown = scene.grown()
    bed.grid.write_text(grown.grid(bed.ledger))
    bed.combo(*bed.launch())
    return grown
