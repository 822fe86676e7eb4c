"""Opens the windows of sessions, one at a time or many at once, through libtmux."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from comborun.errors import UserError
from comborun.host.engines.multiplexers import MULTIPLEXERS
from comborun.model.attempt import SLURM, Begin

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import PurePosixPath

    import libtmux


def attach_command(begin: Begin, *, local: bool, write: bool) -> list[str]:
    """The command that opens a session's window, read-only by default where the multiplexer can show it so."""
    if engine := MULTIPLEXERS.get(begin.multiplexer):
        return engine.attach(begin.address, _sockets(begin), local=local, write=write)
    if begin.multiplexer == SLURM:
        raise UserError(f"task {begin.address} of Slurm has no window", "combo attach without --all goes to its node")
    raise UserError("this session was started by hand and has no window", "combo logs shows what it prints")


def step_command(job: str, log: PurePosixPath, *, write: bool) -> list[str]:
    """The command that goes to the node of a task, into its allocation, and shows its log or a shell with its GPUs.

    `job` is the task's own number: srun does not accept `12_7`.
    """
    there = ["bash", "-l"] if write else follow_command(log)
    return ["srun", f"--jobid={job}", "--overlap", "--pty", *there]


def follow_command(log: PurePosixPath) -> list[str]:
    """The command that shows a log as it grows."""
    return ["tail", "-n", "50", "-F", "--", str(log)]


def is_open(begin: Begin) -> bool:
    """Whether a session's window is open on this machine, as far as its multiplexer tells."""
    engine = MULTIPLEXERS.get(begin.multiplexer)
    seen = engine.look(_sockets(begin)) if engine else None
    return seen is None or begin.address in seen


def _sockets(begin: Begin) -> str:
    """The folder of the sockets; empty for the usual one. The former version recorded that of screen for tmux, too."""
    return begin.tmux_tmpdir if begin.multiplexer == "tmux" else begin.screendir


def can_be_shown(begin: Begin) -> bool:
    """Whether its window can be shown read-only."""
    engine = MULTIPLEXERS.get(begin.multiplexer)
    return engine is not None and engine.read_only


def tile(name: str, panes: Mapping[str, str]) -> list[str]:
    """Open a window on the user's own tmux server with a pane for every command; returns the command that shows it.

    Inside tmux it is a window of the user's session, otherwise its own session. A pane closes with its command, the
    window with its last pane. Raises UserError if tmux refuses.
    """
    import libtmux
    from libtmux.exc import LibTmuxException

    server = libtmux.Server()
    commands = iter(panes.items())
    title, first = next(commands)
    try:
        window = _window(server, name, first)
        _label(window.active_pane, title)
        for title, command in commands:
            _label(window.split(shell=command), title)
            window.select_layout("tiled")  # after each one, since a pane that is too small can't be split
        window.set_option("pane-border-status", "top")
        window.set_option("pane-border-format", " #{pane_title} ")
    except LibTmuxException as error:
        raise UserError(f"tmux could not open the window: {error}", "attach to a single session instead") from None
    inside = "select-window" if os.environ.get("TMUX") else "attach-session"
    return ["tmux", inside, "-t", window.window_id or name]


def _window(server: libtmux.Server, name: str, command: str) -> libtmux.Window:
    if os.environ.get("TMUX"):
        current = server.cmd("display-message", "-p", "#{session_id}").stdout[0]
        session = server.sessions.get(session_id=current)
        assert session
        return session.new_window(window_name=name, window_shell=command, attach=False)
    for session in server.sessions if server.is_alive() else ():
        if session.session_name == name:
            session.kill()
    return server.new_session(session_name=name, window_command=command, x=200, y=50).active_window


def _label(pane: libtmux.Pane | None, title: str) -> None:
    if pane:
        pane.cmd("select-pane", "-T", title)
