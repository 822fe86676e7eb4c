"""screen: a process opens each window and leaves.

Its configuration is ours: the user's may open windows that outlive us.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from comborun.host import commands, files
from comborun.host.children import Child, background

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess

_CONFIGURATION = "startup_message off\ndefscrollback 500\nzombie\n"
_ANSWER_S = 5.0


class Screen:
    kind = "screen"

    def __init__(self, run: str) -> None:
        self._file = f"{run}/dispatch/screenrc"
        self._out = f"{run}/dispatch/out"

    def prepare(self) -> None:
        files.write_text(self._file, _CONFIGURATION)
        if _usable():
            return
        folder = os.environ.get("XDG_RUNTIME_DIR") or os.path.expanduser("~")
        os.environ["SCREENDIR"] = folder = f"{folder}/.comborun-screen"
        os.makedirs(folder, mode=0o700, exist_ok=True)
        os.chmod(folder, 0o700)

    def start(self, window: str, words: Sequence[str]) -> subprocess.Popen[bytes] | Child:
        return background(["screen", "-c", self._file, "-dmS", window, *words], self._out)

    def finish(self) -> None:
        """Nothing to do: a screen ends with its program."""


def _usable() -> bool:
    """Whether it has a folder for its sockets. `screen -ls` exits with 0 or 1 for "some" or "none"."""
    said = commands.run(_ANSWER_S, "screen", "-ls", errors=True)[1]
    return "ocket" in said and "annot make directory" not in said and "must have mode" not in said
