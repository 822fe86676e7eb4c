"""Many sessions that are gone at once are one event of the host, not as many failures; pure."""

from __future__ import annotations

from collections.abc import Sequence

from comborun.monitor.answer.snapshot import Attempt, Snapshot
from comborun.monitor.history import History
from comborun.monitor.status import HostEvent, SessionStatus
from comborun.rules.words import Outcome

_TOGETHER = 2
"""so many sessions at least, where the host has not been started again"""


def host_event(snapshot: Snapshot, history: History, sessions: Sequence[SessionStatus]) -> HostEvent | None:
    """What happened to the host and ended sessions, as long as they have not been started anew.

    Sessions that began under another boot id were ended by the restart. Those that vanished under the same one did so
    together when nothing of the run lives any more, the dispatcher included: the user's processes were killed.
    """
    lost = [history.of(one.name)[-1] for one in sessions if one.outcome is Outcome.LOST]
    if any(_of_another_boot(one, snapshot.boot) for one in lost):
        gone = [one for one in lost if one.begin is None or _of_another_boot(one, snapshot.boot)]
        return HostEvent("restarted", _last_sign(gone), tuple(one.session for one in gone))
    gone = [one for one in lost if one.end is None]
    alive = snapshot.dispatcher is not None or any(one.alive for one in sessions)
    if alive or len(gone) < _TOGETHER:
        return None
    return HostEvent("vanished", _last_sign(gone), tuple(one.session for one in gone))


def _of_another_boot(one: Attempt, boot: str) -> bool:
    return bool(boot and one.begin and one.begin.boot and one.begin.boot != boot)


def _last_sign(gone: Sequence[Attempt]) -> float | None:
    """When one of them last wrote to its log, or began."""
    signs = [one.log_changed or (one.begin.started if one.begin else None) for one in gone]
    return max((sign for sign in signs if sign), default=None)
