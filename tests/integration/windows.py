"""What a test sees of the windows of each multiplexer, and types into one: without our code, in folders of its own."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path


class Windows:
    """The windows of one multiplexer that were opened in this environment."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.environment = environment

    @staticmethod
    def own(token: str, folder: str) -> dict[str, str]:
        """The variables that keep them apart from all others."""
        raise NotImplementedError

    def names(self) -> list[str]:
        raise NotImplementedError

    def servers(self) -> list[int]:
        """The processes that keep them."""
        raise NotImplementedError

    def shows(self, address: str) -> bool:
        """Whether the window of a begin record is open."""
        raise NotImplementedError

    def interrupt(self, address: str) -> None:
        """Type Ctrl-C into one."""
        raise NotImplementedError

    def clear(self) -> None:
        """Close all."""
        for pid in self.servers():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
                os.kill(pid, signal.SIGTERM)

    def call(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=20, check=False)


class TmuxWindows(Windows):
    @staticmethod
    def own(token: str, folder: str) -> dict[str, str]:
        return {"COMBORUN_TMUX_SOCKET": f"cb{token}"}

    def tmux(self, *words: str) -> subprocess.CompletedProcess[str]:
        return self.call("tmux", "-L", self.environment["COMBORUN_TMUX_SOCKET"], *words)

    def names(self) -> list[str]:
        return self.tmux("list-sessions", "-F", "#{session_name}").stdout.split()

    def servers(self) -> list[int]:
        return [int(pid) for pid in self.tmux("display-message", "-p", "#{pid}").stdout.split()]

    def shows(self, address: str) -> bool:
        return address in self.names()

    def interrupt(self, address: str) -> None:
        self.tmux("send-keys", "-t", f"={address}:", "C-c").check_returncode()

    def clear(self) -> None:
        folder = Path(self.environment.get("TMUX_TMPDIR", "/tmp"), f"tmux-{os.getuid()}")
        socket = folder / self.environment["COMBORUN_TMUX_SOCKET"]
        if socket.exists():
            with contextlib.suppress(subprocess.SubprocessError):
                super().clear()
                self.tmux("kill-server")
            socket.unlink(missing_ok=True)


class ScreenWindows(Windows):
    @staticmethod
    def own(token: str, folder: str) -> dict[str, str]:
        return {"SCREENDIR": folder}

    def names(self) -> list[str]:
        return re.findall(r"^\s+\d+\.(\S+)", self.call("screen", "-ls").stdout, re.MULTILINE)

    def servers(self) -> list[int]:
        found = (file.name.partition(".")[0] for file in Path(self.environment["SCREENDIR"]).iterdir())
        return [int(pid) for pid in found if pid.isdecimal()]

    def shows(self, address: str) -> bool:
        return Path(f"/proc/{address.partition('.')[0]}").exists()

    def interrupt(self, address: str) -> None:
        self.call("screen", "-S", address, "-p", "0", "-X", "stuff", "\x03").check_returncode()


WINDOWS: dict[str, type[Windows]] = {"tmux": TmuxWindows, "screen": ScreenWindows}
