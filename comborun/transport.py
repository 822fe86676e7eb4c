"""The one seam between comborun and the world: something that runs bash on a host.

Files are put there and fetched by scripts that read standard input or write standard output, so a transport needs a
single method, and a fake one for tests is a few lines.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from comborun.amounts import MIB


@dataclass(frozen=True)
class Completed:
    """What a script on the host left: its exit code (-N for signal N) and both streams, every byte."""

    code: int
    stdout: bytes
    stderr: bytes

    @property
    def text(self) -> str:
        return self.stdout.decode("utf-8", "replace")

    @property
    def complaint(self) -> str:
        return self.stderr.decode("utf-8", "replace").strip()


class Transport(Protocol):
    """Runs bash scripts on one host."""

    @property
    def host(self) -> str:
        """The name that the user gave; `local` for this machine."""
        ...

    def run(
        self, script: str, *args: str, stdin: bytes = b"", timeout: float = 60.0, limit: int = 64 * MIB
    ) -> Completed:
        """Run `script` in `bash --noprofile --norc` with `args` as $1, $2 ...

        Raises HostError when the host can't be reached, when `timeout` seconds have passed (what the script started
        is ended first) and when a stream holds more than `limit` bytes. A code that is not 0 raises nothing.
        """
        ...
