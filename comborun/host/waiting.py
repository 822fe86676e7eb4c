"""dispatch/waiting: what queued sessions wait for, beyond their turn.

Each one that has ended and starts again is there, too, since its files alone look as if it were over. Written when it
changes; the dispatcher never reads it.
"""

from __future__ import annotations

from comborun.host import files
from comborun.host.queue import QUEUED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Tuple

    from comborun.host.dispatch import Dispatcher

    Line = Tuple[str, str, str, str]


class Waiting:
    """The file, and whether it is worth a look before the next sweep."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._text: str | None = None
        self.stale = False

    def tell(self) -> None:
        self.stale = False
        text = "".join("\t".join(line) + "\n" for line in self._lines())
        if text == self._text:
            return
        self._text = text
        path = self._dispatcher.run.waiting
        if text:
            files.write_text(path, text)
        else:
            files.remove(path)

    def _lines(self) -> list[Line]:
        """NAME, what for, until when, detail: at most one of a session, but all that a server waits for."""
        dispatcher = self._dispatcher
        retries: list[Line] = []
        smokes: list[Line] = []
        open_names = []
        for session in dispatcher.queue:
            if session.life != QUEUED:
                continue
            if session.retry_why:
                retries.append((session.name, "retry", session.retry_until, session.retry_why))
            if dispatcher.ends.smoke_first(session):
                smokes.append((session.name, "smoke", "", "the smoke test comes first"))
            elif session.retry_at is None:
                open_names.append(session.name)
        room = list(dispatcher.admission.waits(open_names))
        told = {line[0] for line in room}
        served = list(dispatcher.servers.waits(open_names)) if dispatcher.servers.any else []
        return [line for line in retries if line[0] not in told] + smokes + room + served
