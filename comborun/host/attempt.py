"""One attempt, as whoever stands beside its command knows it: its supervisor, or the watch over an orphan."""

from __future__ import annotations

import json
import os
import re

from comborun.host import files, judging
from comborun.rules import records
from comborun.rules.names import RunLayout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Attempt:
    """`name` is `servers/NAME` for a model server. Raises LookupError where there is no such run, ValueError where the
    attempt is no number."""

    def __init__(self, run: str, name: str, number: str) -> None:
        self.run_layout = layout = RunLayout(os.path.abspath(run))
        self.family, _, self.name = name.rpartition("/")
        if not re.fullmatch("[1-9][0-9]{0,8}", number):
            raise ValueError(number)
        self.number = int(number)
        self.run_id = files.read_line(layout.id).strip()
        if not self.run_id:
            raise LookupError(f"{run} is no run directory")
        self.folder = f"{layout.servers if self.family else layout.sessions}/{self.name}"
        self.at = (layout.server_attempt if self.family else layout.attempt)(self.name, self.number)
        self.marker = f"{self.run_id}/{self.name}/{self.number}"
        self.data: dict[str, Any] = {}
        self.grant: dict[str, str] = {}
        self.first = self.count = 0
        self.gpus = self.port = ""
        self.pid = 0
        self.start = ""

    def read(self, grant: dict[str, str]) -> None:
        """What it has to do, as far as that is granted. Raises LookupError."""
        path = f"{self.folder}/session.json"
        try:
            self.data = json.loads(files.read_text(path))
            self.first, self.count = int(self.data["first"]), int(self.data["count"])
        except (ValueError, KeyError, TypeError):
            raise LookupError(f"{path} is absent, torn or foreign") from None
        self.grant = grant
        first, count = records.integer(self.grant, "first"), records.integer(self.grant, "count")
        if self.rules().ranged and first is not None and first >= 0 and count and count > 0:
            self.first, self.count = first, count  # the tail that is missing

    def rules(self) -> judging.Rules:
        return judging.Rules.of_session(self.data.get("judging", {}), self.first, self.count)

    def tell(self, what: str, word: object = "") -> None:
        """A word to the dispatcher, if there is one."""
        files.tell(self.run_layout.fifo, f"{what} {self.name} {self.number} {word}")


def setting(name: str, default: float) -> float:
    """A number of seconds of the environment; what is none is the default."""
    found = records.seconds(os.environ, name)
    return default if found is None else found
