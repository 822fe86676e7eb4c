"""The windows of local sessions, through libtmux."""

from __future__ import annotations

import os

import libtmux


def tmux_socket() -> str:
    """The socket name of comborun's own tmux server."""
    return os.environ.get("COMBORUN_TMUX_SOCKET", "comborun")


def open_windows(socket: str) -> frozenset[str]:
    """The exact names of the tmux sessions that are open on this machine; empty when no server runs."""
    server = libtmux.Server(socket_name=socket)
    if not server.is_alive():
        return frozenset()
    return frozenset(session.session_name for session in server.sessions if session.session_name)
