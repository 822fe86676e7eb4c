"""The tmux server of comborun. All runs of a user share it; it is not the user's own."""

from __future__ import annotations

import os
import re

from comborun.host.engines.protocol import Multiplexer
from comborun.host.system import commands, files
from comborun.host.system.children import background
from comborun.rules.names import VARIABLE, RunLayout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Sequence

    from comborun.host.system.children import Opening

_NOT_HANDED_ON = frozenset(("_", "PWD", "OLDPWD", "SHLVL", "TERM"))
_OF_A_LOGIN = ("DISPLAY", "SSH_AUTH_SOCK", "SSH_CONNECTION", "XAUTHORITY")
"""a window has none of these from the process that started the server"""
_SOCKET = "comborun"
_END_S, _ANSWER_S = 2.0, 10.0
_LIST_MOST = 1 << 20


class Tmux(Multiplexer):
    kind = "tmux"
    variables = ("TMUX", "TMUX_PANE")
    opens_several = True
    read_only = True

    def __init__(self, run: str) -> None:
        super().__init__(run)
        self._file = RunLayout(run).configuration("tmux")
        self._tmux = ["tmux", "-L", _socket(), "-f", self._file]

    def prepare(self) -> None:
        """A window gets the environment of its starter, not of the process that started the server."""
        names = {name for name in os.environ if VARIABLE.fullmatch(name) and name not in _NOT_HANDED_ON}
        handed_on = " ".join(sorted(names.union(_OF_A_LOGIN)))
        text = "set -sq exit-empty off\nset -g history-limit 500\n"  # a server that is just ending refuses windows
        files.write_text(self._file, f'{text}set -g update-environment "{handed_on}"\n')

    def start(self, windows: Sequence[tuple[str, Sequence[str]]]) -> list[Opening]:
        """One call of tmux opens all of them: it fails if one of them fails."""
        path = re.sub(r"([*?\[\]\\])", r"\\\1", self._file)  # source-file takes a pattern
        words = ["start-server", ";", "source-file", path]  # the server may have the settings of another run
        for window, command in windows:
            words += [";", "new-session", "-d", "-s", window, "--", *command]
        return [background([*self._tmux, *words], self.out)] * len(windows)

    def end(self) -> None:
        """The server may end with its last session, unless another run needs it."""
        commands.run(_END_S, *self._tmux, "set", "-s", "exit-empty", "on")

    @classmethod
    def address(cls, name: str) -> str:
        return name

    @classmethod
    def attach(cls, address: str, folder: str, *, local: bool, write: bool) -> list[str]:
        """With exact names only, and UTF-8 always."""
        read_only = [] if write else ["-r"]
        socket = _socket() if local else _SOCKET
        place = ["env", f"TMUX_TMPDIR={folder}"] if folder else []
        return [*place, "tmux", "-u", "-L", socket, "attach-session", *read_only, "-t", f"={address}"]

    @classmethod
    def look(cls, folder: str = "") -> frozenset[str] | None:
        place = ("env", f"TMUX_TMPDIR={folder}") if folder else ()
        words = (*place, "tmux", "-L", _socket(), "list-sessions", "-F", "#{session_name}")
        _, listed = commands.run(_ANSWER_S, *words, most=_LIST_MOST)
        return frozenset(listed.splitlines())  # none without a server


def _socket() -> str:
    return os.environ.get("COMBORUN_TMUX_SOCKET") or _SOCKET
