"""The engines. tmux and screen: a process opens each window and leaves, and nothing waits for it.

They know nothing of states, retries, evidence or notices. A session's state is in its files; a window only shows it.
"""

from __future__ import annotations

import os
import re

from comborun.host.system import commands, files
from comborun.host.system.children import background

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Sequence

    from comborun.host.system.children import Opening

_VARIABLE = re.compile("[A-Za-z_][A-Za-z0-9_]*")
_NOT_HANDED_ON = frozenset(("_", "PWD", "OLDPWD", "SHLVL", "TERM"))
_OF_A_LOGIN = ("DISPLAY", "SSH_AUTH_SOCK", "SSH_CONNECTION", "XAUTHORITY")
"""a window has none of these from the process that started the server"""
_FINISH_S, _ANSWER_S = 2.0, 5.0


class Tmux:
    """The tmux server of comborun, as one run uses it. All runs of a user share it; it is not the user's own."""

    kind, configuration = "tmux", "tmux.conf"
    opens_several = True
    """whether several windows cost less by one call"""

    def __init__(self, run: str) -> None:
        self._file, self._out = f"{run}/dispatch/{self.configuration}", f"{run}/dispatch/out"
        self._tmux = ["tmux", "-L", os.environ.get("COMBORUN_TMUX_SOCKET") or "comborun", "-f", self._file]

    def prepare(self) -> None:
        """Called once before the first start. A window gets the environment of its starter, not of the process that
        started the server.
        """
        names = {name for name in os.environ if _VARIABLE.fullmatch(name) and name not in _NOT_HANDED_ON}
        handed_on = " ".join(sorted(names.union(_OF_A_LOGIN)))
        text = "set -sq exit-empty off\nset -g history-limit 500\n"  # a server that is just ending refuses windows
        files.write_text(self._file, f'{text}set -g update-environment "{handed_on}"\n')

    def start(self, windows: Sequence[tuple[str, Sequence[str]]]) -> list[Opening]:
        """Open windows (name, command). One call of tmux opens all of them: it fails if one of them fails."""
        path = re.sub(r"([*?\[\]\\])", r"\\\1", self._file)  # source-file takes a pattern
        words = ["start-server", ";", "source-file", path]  # the server may have the settings of another run
        for window, command in windows:
            words += [";", "new-session", "-d", "-s", window, "--", *command]
        return [background([*self._tmux, *words], self._out)] * len(windows)

    def finish(self) -> None:
        """This run starts nothing more: the server may end with its last session, unless another run needs it."""
        commands.run(_FINISH_S, *self._tmux, "set", "-s", "exit-empty", "on")


class Screen(Tmux):
    """screen with our own configuration: the user's may open windows that outlive us."""

    kind, configuration = "screen", "screenrc"
    opens_several = False

    def prepare(self) -> None:
        files.write_text(self._file, "startup_message off\ndefscrollback 500\nzombie\n")
        said = commands.run(_ANSWER_S, "screen", "-ls", errors=True)[1]
        if "ocket" in said and "annot make directory" not in said and "must have mode" not in said:
            return  # it has a folder for its sockets
        folder = os.environ.get("XDG_RUNTIME_DIR") or os.path.expanduser("~")
        os.environ["SCREENDIR"] = folder = f"{folder}/.comborun-screen"
        os.makedirs(folder, mode=0o700, exist_ok=True)
        os.chmod(folder, 0o700)

    def start(self, windows: Sequence[tuple[str, Sequence[str]]]) -> list[Opening]:
        start = ["screen", "-c", self._file, "-dmS"]
        return [background([*start, window, *command], self._out) for window, command in windows]

    def finish(self) -> None:
        """Nothing to do: a screen ends with its program."""


def launch_s() -> float:
    """Seconds in which a window must begin."""
    return float(os.environ.get("COMBORUN_LAUNCH_S") or 20)


def engine(kind: str, run: str) -> Tmux:
    return Screen(run) if kind == "screen" else Tmux(run)
