"""The programs that show sessions in windows: what each must do (start, look, end, address, attach), tmux and screen.

They know nothing of states, retries, evidence or notices. A session's state is in its files; a window only shows it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from comborun.host.system import commands, files
from comborun.host.system.children import Child, background
from comborun.rules.names import VARIABLE, RunLayout

_NOT_HANDED_ON = frozenset(("_", "PWD", "OLDPWD", "SHLVL", "TERM"))
_OF_A_LOGIN = ("DISPLAY", "SSH_AUTH_SOCK", "SSH_CONNECTION", "XAUTHORITY")
"""a window of tmux has none of these from the process that started the server"""
_SOCKET = "comborun"
_END_S, _TMUX_S, _SCREEN_S = 2.0, 10.0, 5.0
"""seconds for the last call of tmux, and for other answers"""
_LIST_MOST = 1 << 20


class Multiplexer:
    """One such program, as one run on this machine uses it."""

    kind = ""
    version = "-V"
    """the option that makes it tell its version"""
    variables: Sequence[str] = ()
    """those that it sets in its windows; a dispatcher that was started in one forgets them"""
    handed_on: Sequence[str] = ()
    """those of them that a supervisor outside a window needs for `address`"""
    opens_several = False
    """whether several windows cost less by one call"""
    read_only = False
    """whether a window can be shown so that nobody types into it"""

    def __init__(self, run: str) -> None:
        self._layout = RunLayout(run)
        self._out = self._layout.out

    @property
    def _file(self) -> str:
        """Its configuration, if it has one."""
        return self._layout.configuration(self.kind)

    def prepare(self) -> None:
        """Called once before the first start, in the dispatcher; supervisors inherit its variables."""

    def start(self, windows: Sequence[tuple[str, Sequence[str]]]) -> list[Child]:
        """Open windows (name, command), each by a process that leaves at once. Nothing waits for it.

        A name may come again, after its window was killed.
        """
        raise NotImplementedError

    def end(self) -> None:
        """This run starts nothing more."""

    # Also without a run, on a laptop

    @classmethod
    def address(cls, name: str) -> str:
        """Asked by the supervisor of a window of that name: how `attach` finds it."""
        raise NotImplementedError

    @classmethod
    def attach(cls, address: str, folder: str, *, local: bool, write: bool) -> list[str]:
        """The command that shows a window. `folder`: of its sockets, as its record has it; `local`: it is here.

        Without `write`, only where `read_only` says that it can: elsewhere `combo attach` follows the log.
        """
        raise NotImplementedError

    @classmethod
    def look(cls, folder: str = "") -> frozenset[str] | None:  # noqa: ARG003 - of tmux
        """The addresses of all windows that are open here, with sockets in that folder; None if that can't be told."""
        return None


class Tmux(Multiplexer):
    """The tmux server of comborun. All runs of a user share it; it is not the user's own."""

    kind = "tmux"
    variables = ("TMUX", "TMUX_PANE")
    opens_several = True
    read_only = True

    def __init__(self, run: str) -> None:
        super().__init__(run)
        self._tmux = ["tmux", "-L", _socket(), "-f", self._file]

    def prepare(self) -> None:
        """A window gets the environment of its starter, not of the process that started the server."""
        names = {name for name in os.environ if VARIABLE.fullmatch(name) and name not in _NOT_HANDED_ON}
        handed_on = " ".join(sorted(names.union(_OF_A_LOGIN)))
        text = "set -sq exit-empty off\nset -g history-limit 500\n"  # a server that is just ending refuses windows
        files.write_text(self._file, f'{text}set -g update-environment "{handed_on}"\n')

    def start(self, windows: Sequence[tuple[str, Sequence[str]]]) -> list[Child]:
        """One call of tmux opens all of them: it fails if one of them fails."""
        path = re.sub(r"([*?\[\]\\])", r"\\\1", self._file)  # source-file takes a pattern
        words = ["start-server", ";", "source-file", path]  # the server may have the settings of another run
        for window, command in windows:
            words += [";", "new-session", "-d", "-s", window, "--", *command]
        return [background([*self._tmux, *words], self._out)] * len(windows)

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
        _, listed = commands.run(_TMUX_S, *words, most=_LIST_MOST)
        return frozenset(listed.splitlines())  # none without a server


def _socket() -> str:
    return os.environ.get("COMBORUN_TMUX_SOCKET") or _SOCKET


class Screen(Multiplexer):
    """screen with our own configuration: the user's may open windows that outlive us. It ends with its program."""

    kind = "screen"
    version = "-v"
    variables = handed_on = ("STY",)

    def prepare(self) -> None:
        """Choose a folder for the sockets if the usual one can't be used."""
        files.write_text(self._file, "startup_message off\ndefscrollback 500\nzombie\n")
        said = commands.run(_SCREEN_S, "screen", "-ls", errors=True)[1]
        if "ocket" in said and "annot make directory" not in said and "must have mode" not in said:
            return
        folder = os.environ.get("XDG_RUNTIME_DIR") or os.path.expanduser("~")
        os.environ["SCREENDIR"] = folder = f"{folder}/.comborun-screen"
        os.makedirs(folder, mode=0o700, exist_ok=True)
        os.chmod(folder, 0o700)

    def start(self, windows: Sequence[tuple[str, Sequence[str]]]) -> list[Child]:
        start = ["screen", "-c", self._file, "-dmS"]
        return [background([*start, window, *command], self._out) for window, command in windows]

    @classmethod
    def address(cls, name: str) -> str:  # noqa: ARG003 - screen puts its own number before the name
        return os.environ.get("STY", "")

    @classmethod
    def attach(cls, address: str, folder: str, *, local: bool, write: bool) -> list[str]:  # noqa: ARG003 - see below
        """The same here and elsewhere; whoever opens the window can type into it."""
        place = ["env", f"SCREENDIR={folder}"] if folder else []
        return [*place, "screen", "-U", "-x", address]


MULTIPLEXERS: dict[str, type[Multiplexer]] = {one.kind: one for one in (Tmux, Screen)}
"""their names are also in `rules/names.py`, for the options of commands"""


def multiplexer(kind: str, run: str) -> Multiplexer:
    """The multiplexer of a run, which says in dispatch/multiplexer what it uses."""
    return MULTIPLEXERS.get(kind, Tmux)(run)
