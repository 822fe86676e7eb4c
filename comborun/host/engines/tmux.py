"""tmux: one client in control mode opens all windows of a run, a command a line.

The client has no session of its own. A control client must be attached to one, so each `new-session` takes it along:
it is always attached to the newest window. With the last window of the run it ends by itself, and keeps no server
alive. When its window ends before there is a newer one it ends, too, and the next start makes another client.
A window takes 1.6 ms so, and 3.4 ms with a process for each.
"""

from __future__ import annotations

import collections
import contextlib
import math
import os
import re
import subprocess
import time
from collections.abc import Sequence

from comborun.host import files, process
from comborun.host.children import NOT_RUN, quietly

_VARIABLE = re.compile("[A-Za-z_][A-Za-z0-9_]*")
_NOT_HANDED_ON = frozenset(("_", "PWD", "OLDPWD", "SHLVL", "TERM"))
_TRIES = 4
_NAME_FREE_S, _NAME_LOOK_S = 2.0, 0.05
"""seconds in which a window of the same name may close, and between two tries"""
_FINISH_S = 2.0
_FLAGS = ("-f", "no-output,ignore-size")
"""flags of the control client: it shows nothing, and no window takes its size"""


class Window:
    """A window that is being opened."""

    __slots__ = ("again_at", "code", "engine", "name", "tries", "until", "words")

    def __init__(self, engine: Tmux, name: str, words: Sequence[str]) -> None:
        self.engine = engine
        self.name = name
        self.words = words
        self.code: int | None = None
        self.tries = 0
        self.again_at = 0.0
        self.until = time.monotonic() + _NAME_FREE_S

    def poll(self) -> int | None:
        return self.code

    def kill(self) -> None:
        self.engine.give_up(self)


class Tmux:
    """The tmux server of comborun, as one run uses it."""

    kind = "tmux"

    def __init__(self, run: str) -> None:
        self.said = ""
        self.socket = os.environ.get("COMBORUN_TMUX_SOCKET") or "comborun"
        self._file = f"{run}/dispatch/tmux.conf"
        self._out = f"{run}/dispatch/out"
        self._preparing: subprocess.Popen[bytes] | None = None
        self._prepared = False
        self._flags: tuple[str, ...] = _FLAGS
        self._client: subprocess.Popen[bytes] | None = None
        self._answer: list[bytes] = []
        """the lines of the present answer"""
        self._rest = b""
        self._asked: collections.deque[Window] = collections.deque()
        """commands that the client got, oldest first; the first one of a new client is on its command line"""
        self._connecting = False
        """whether that first command has no answer yet. tmux may run lines from the input before it, so they wait"""
        self._waiting: collections.deque[Window] = collections.deque()

    def prepare(self) -> None:
        """Let a window get the environment of its starter, not of the process that started the server."""
        names = sorted(name for name in os.environ if _VARIABLE.fullmatch(name) and name not in _NOT_HANDED_ON)
        text = "set -s exit-empty off\nset -g history-limit 500\n"  # a server that is just ending refuses windows
        files.write_text(self._file, f'{text}set -ag update-environment " {" ".join(names)}"\n')

    def start(self, window: str, words: Sequence[str]) -> Window:
        made = Window(self, window, words)
        self._waiting.append(made)
        if not self._prepared and not self._preparing:
            path = re.sub(r"([*?\[\]\\])", r"\\\1", self._file)  # source-file takes a pattern
            try:
                self._preparing = quietly([*self._tmux, "start-server", ";", "source-file", path], self._out)
            except OSError:
                self._waiting.remove(made)
                made.code = NOT_RUN
                return made
        self.serve()
        return made

    def descriptors(self) -> list[int]:
        asked = self._client if self._asked else None  # otherwise its lines are only events
        return [asked.stdout.fileno()] if asked and asked.stdout else []

    def serve(self) -> None:
        if self._preparing:
            if self._preparing.poll() is None:
                return
            self._preparing, self._prepared = None, True
        self._hear()
        now = time.monotonic()
        for made in [made for made in self._waiting if made.again_at <= now]:
            if self._connecting:
                break
            self._waiting.remove(made)
            self._open(made)

    def due(self) -> float:
        if not self._prepared or self._connecting:
            return math.inf
        return min((made.again_at for made in self._waiting), default=math.inf)

    def give_up(self, made: Window) -> None:
        """Give up a window that takes too long. If the server hangs, a new client is made, which may find another
        server.
        """
        if made in self._waiting:
            self._waiting.remove(made)
        if self._preparing:
            self._preparing.kill()
            self._preparing = None
        if made in self._asked and self._client:
            self._client.kill()
        made.code = 1

    def finish(self) -> None:
        """Let the server end with its last session, unless another run needs it."""
        if self._client and self._client.stdin:
            self._client.stdin.close()
        try:
            quietly([*self._tmux, "set", "-s", "exit-empty", "on"], os.devnull).wait(_FINISH_S)
        except (OSError, subprocess.SubprocessError):
            return

    @property
    def _tmux(self) -> list[str]:
        return ["tmux", "-L", self.socket, "-f", self._file]

    def _open(self, made: Window) -> None:
        made.tries += 1
        command = ["new-session", *self._flags, "-s", made.name, "--", *made.words]
        line = " ".join(map(quoted, command))
        if "\n" in line:  # each line is a command
            made.code = NOT_RUN
        elif self._client:
            self._asked.append(made)
            self._say(line)
        else:
            try:
                self._connect(command)
            except OSError:
                made.code = NOT_RUN
            else:
                self._asked.append(made)

    def _connect(self, command: Sequence[str]) -> None:
        # tmux 3.3a keeps a control client whose peer was killed while something was still to be written, for ever.
        with open(self._out, "ab") as log:
            self._client = subprocess.Popen(
                [*self._tmux, "-C", *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                preexec_fn=process.end_with_parent,  # noqa: PLW1509  this process has one thread
            )
        for pipe in filter(None, (self._client.stdin, self._client.stdout)):
            os.set_blocking(pipe.fileno(), False)
        self._answer, self._rest, self._connecting = [], b"", True

    def _say(self, line: str) -> None:
        """Send a line. If the client does not take it, the client is ended, and its commands go to the next one."""
        client = self._client
        if client and client.stdin:
            data = (line + "\n").encode("utf-8", "surrogateescape")
            try:
                if os.write(client.stdin.fileno(), data) == len(data):
                    return
            except OSError:
                pass
            client.kill()

    def _hear(self) -> None:
        client = self._client
        while client and client.stdout:
            try:
                data = os.read(client.stdout.fileno(), 65536)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                self._lost(client)
                return
            *lines, self._rest = (self._rest + data).split(b"\n")
            for line in lines:
                self._heed(line)

    def _heed(self, line: bytes) -> None:
        """Read a line of the client. `%begin`, lines, then `%end` or `%error` answer one command, in order. Other lines
        are events.
        """
        word = line.split(b" ", 1)[0]
        if word == b"%begin":
            self._answer = []
        elif word in (b"%end", b"%error"):
            self._connecting = False
            if self._asked:
                self._answered(self._asked.popleft(), word == b"%end", b"".join(self._answer))
        else:
            self._answer.append(line)

    def _answered(self, made: Window, opened: bool, said: bytes) -> None:
        """Handle an answer. If the name is in use, an older window may be closing, or this one was opened by an earlier
        request.
        """
        if not opened and made.tries < _TRIES and self._lacks_flags(said):
            self._waiting.append(made)
        elif opened or (made.tries > 1 and not made.again_at and b"duplicate session" in said):
            made.code = 0
        elif b"duplicate session" in said and made.code is None and time.monotonic() < made.until:
            made.again_at = time.monotonic() + _NAME_LOOK_S
            self._waiting.append(made)
        else:
            made.code, self.said = 1, said.decode("utf-8", "replace")

    def _lacks_flags(self, said: bytes) -> bool:
        """Whether tmux (before 3.2) refused our flags just now; then it gets none from now on."""
        if not (b"unknown flag" in said or b"unknown option" in said or b"usage:" in said):
            return False
        self._flags = ()
        return True

    def _lost(self, client: subprocess.Popen[bytes]) -> None:
        """Handle the client's end, with its window or its server: commands without an answer are sent again."""
        code = self._reap(client)
        self._client, self._connecting = None, False
        said = b"\n".join(self._answer)
        self._lacks_flags(said)
        while self._asked:
            made = self._asked.popleft()
            if made.code is None and made.tries < _TRIES:
                self._waiting.append(made)
            elif made.code is None:
                made.code, self.said = code or 1, said.decode("utf-8", "replace")

    def _reap(self, client: subprocess.Popen[bytes]) -> int:
        for pipe in filter(None, (client.stdin, client.stdout)):
            with contextlib.suppress(OSError):
                pipe.close()
        try:
            return client.wait(1.0)
        except subprocess.TimeoutExpired:
            client.kill()
            return client.wait()


def quoted(word: str) -> str:
    """A word as tmux reads a line: nothing is special between single quotes."""
    return "'" + word.replace("'", "'\\''") + "'"
