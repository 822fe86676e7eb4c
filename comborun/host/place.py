"""Where an attempt is made: on this machine, under the lock of its session. Tasks of Slurm have host/task.py."""

from __future__ import annotations

import os

from comborun.host import files, judging, process
from comborun.host.attempt import setting
from comborun.host.refusal import BUSY, CANT_WRITE, Refusal
from comborun.host.surroundings import inheritable
from comborun.rules import records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from comborun.host.attempt import Attempt

    class Place(Protocol):
        """What a supervisor asks of where it runs."""

        node: str
        output: str
        """the folder that its command writes into"""
        shown: str
        """the log that its window shows"""
        held: list[int]
        """descriptors that live as long as its command"""

        def open(self) -> None:
            """All that can be done before there is a slot. Raises Refusal."""

        def grant(self) -> dict[str, str]:
            """What it was given."""
            ...

        def claim(self, fields: list[tuple[str, object]]) -> bool:
            """Claim the attempt; False where it has been made. Raises OSError when that can't be written."""
            ...

        def withdraw(self) -> None:
            """It was claimed, and nothing can be started."""

        def address(self) -> str:
            """What attaches to it."""
            ...

        def beat(self) -> str:
            """Tell that it lives; `closed` when another has ended this attempt, `stop` when it shall end."""
            ...

        def why(self) -> tuple[str, str] | None:
            """Cause and note of one that was told to end, where somebody else knows better."""

        def leave(self) -> None:
            """Its end is on record."""


def place(of: Attempt, engine: str) -> Place:
    """Where it runs. Raises LookupError where there is no such place."""
    if engine == "slurm":
        from comborun.host.task import Start

        return Start(of.run_layout.directory, of.name, of.number)
    return Here(of, engine)


class Here:
    """In a window of tmux or screen, or in a terminal."""

    def __init__(self, of: Attempt, engine: str) -> None:
        self.node = os.uname().nodename
        self.output, self.shown = of.at.output, of.at.log
        self.held: list[int] = []
        self._of, self._at = of, of.at
        self._engine = engine

    def open(self) -> None:
        """Take the session's lock, and set room for the end aside."""
        of, folder = self._of, self._of.folder
        try:
            os.makedirs(self.output, exist_ok=True)
            path = f"{folder}/lock"
            lock = files.lock(path, setting("COMBORUN_LOCK_S", 10.0))
            if lock < 0 and os.path.exists(f"{folder}/attempt-{of.number - 1}/end"):
                process.sweep(f"{of.run_id}/{of.name}/", 0.0)  # what earlier attempts have left behind
                lock = files.lock(path, 2.0)
        except OSError as error:
            raise Refusal(CANT_WRITE, f"can't write in {folder}: {error.strerror}") from None
        if lock < 0:
            raise Refusal(BUSY, f"an earlier attempt of {of.name} still holds the lock")
        self.held.append(inheritable(lock))
        if not judging.reserve(self._at):
            raise Refusal(CANT_WRITE, f"can't write in {self._at.directory}: is the disk full?")

    def grant(self) -> dict[str, str]:
        return files.read(self._at.grant)

    def claim(self, fields: list[tuple[str, object]]) -> bool:
        try:
            if not files.create(self._at.claim, records.render(fields)):
                return False
        except OSError:
            self.withdraw()
            raise
        if not files.append(self._at.log, ""):
            self.withdraw()
            raise OSError(f"can't write {self._at.log}")
        return True

    def withdraw(self) -> None:
        """It has not been made, and may be later."""
        files.remove(self._at.claim)

    def address(self) -> str:
        if self._engine == "tmux":
            again = f"_a{self._of.number}" if self._of.number > 1 else ""
            return f"{self._of.name}_{self._of.run_id[-4:]}{again}"
        return os.environ.get("STY", "") if self._engine == "screen" else ""

    def beat(self) -> str:
        return ""

    def why(self) -> tuple[str, str] | None:
        return None

    def leave(self) -> None:
        return
