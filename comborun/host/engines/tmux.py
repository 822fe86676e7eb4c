"""tmux: a process opens each window and leaves. All runs of a user share one server, which is not the user's own."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from comborun.host import commands, files
from comborun.host.children import Child, background

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess

_VARIABLE = re.compile("[A-Za-z_][A-Za-z0-9_]*")
_NOT_HANDED_ON = frozenset(("_", "PWD", "OLDPWD", "SHLVL", "TERM"))
_OF_A_LOGIN = ("DISPLAY", "SSH_AUTH_SOCK", "SSH_CONNECTION", "XAUTHORITY")
"""a window has none of these from the process that started the server"""
_FINISH_S = 2.0


class Tmux:
    """The tmux server of comborun, as one run uses it."""

    kind = "tmux"

    def __init__(self, run: str) -> None:
        self._file = f"{run}/dispatch/tmux.conf"
        self._out = f"{run}/dispatch/out"
        self._tmux = ["tmux", "-L", os.environ.get("COMBORUN_TMUX_SOCKET") or "comborun", "-f", self._file]

    def prepare(self) -> None:
        """Let a window get the environment of its starter, not of the process that started the server."""
        names = {name for name in os.environ if _VARIABLE.fullmatch(name) and name not in _NOT_HANDED_ON}
        handed_on = " ".join(sorted(names.union(_OF_A_LOGIN)))
        text = "set -sq exit-empty off\nset -g history-limit 500\n"  # a server that is just ending refuses windows
        files.write_text(self._file, f'{text}set -g update-environment "{handed_on}"\n')

    def start(self, window: str, words: Sequence[str]) -> subprocess.Popen[bytes] | Child:
        path = re.sub(r"([*?\[\]\\])", r"\\\1", self._file)  # source-file takes a pattern
        settings = ["start-server", ";", "source-file", path, ";"]  # the server may have those of another run
        return background([*self._tmux, *settings, "new-session", "-d", "-s", window, "--", *words], self._out)

    def finish(self) -> None:
        """Let the server end with its last session, unless another run needs it."""
        commands.run(_FINISH_S, *self._tmux, "set", "-s", "exit-empty", "on")
