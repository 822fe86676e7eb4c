"""screen with our own configuration: the user's may open windows that outlive us."""

from __future__ import annotations

import os

from comborun.host.engines.protocol import Multiplexer
from comborun.host.system import commands, files
from comborun.host.system.children import background
from comborun.rules.names import RunLayout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Sequence

    from comborun.host.system.children import Opening

_ANSWER_S = 5.0


class Screen(Multiplexer):
    kind = "screen"
    version = "-v"
    variables = handed_on = ("STY",)

    def __init__(self, run: str) -> None:
        super().__init__(run)
        self._file = RunLayout(run).configuration("screen")

    def prepare(self) -> None:
        """Choose a folder for the sockets if the usual one can't be used."""
        files.write_text(self._file, "startup_message off\ndefscrollback 500\nzombie\n")
        said = commands.run(_ANSWER_S, "screen", "-ls", errors=True)[1]
        if "ocket" in said and "annot make directory" not in said and "must have mode" not in said:
            return
        folder = os.environ.get("XDG_RUNTIME_DIR") or os.path.expanduser("~")
        os.environ["SCREENDIR"] = folder = f"{folder}/.comborun-screen"
        os.makedirs(folder, mode=0o700, exist_ok=True)
        os.chmod(folder, 0o700)

    def start(self, windows: Sequence[tuple[str, Sequence[str]]]) -> list[Opening]:
        start = ["screen", "-c", self._file, "-dmS"]
        return [background([*start, window, *command], self.out) for window, command in windows]

    def end(self) -> None:
        """Nothing to do: a screen ends with its program."""

    @classmethod
    def address(cls, name: str) -> str:  # noqa: ARG003 - screen puts its own number before the name
        return os.environ.get("STY", "")

    @classmethod
    def attach(cls, address: str, folder: str, *, local: bool, write: bool) -> list[str]:  # noqa: ARG003 - see below
        """The same here and elsewhere; whoever opens the window can type into it."""
        place = ["env", f"SCREENDIR={folder}"] if folder else []
        return [*place, "screen", "-U", "-x", address]
