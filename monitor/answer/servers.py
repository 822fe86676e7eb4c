"""The model servers of a run as the probe tells of them: pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from comborun.monitor.answer.fields import Fields


@dataclass(frozen=True)
class ServerStatus:
    """One model server. Times are seconds since 1970 on the host's clock."""

    name: str
    state: str
    """queued, starting, loading, ready, silent (it does not answer) or ended"""
    attempt: int = 0
    """0 before the first"""
    since: float | None = None
    """when it began to be in that state"""
    gpus: str = ""
    port: int | None = None
    cause: str = ""
    """how its latest attempt ended"""
    why: str = ""
    """for people"""

    @property
    def alive(self) -> bool:
        return self.state not in {"queued", "ended"}

    @property
    def indexes(self) -> tuple[int, ...]:
        """Of the GPUs that it has, or had."""
        return tuple(int(gpu) for gpu in self.gpus.split(",") if gpu.isdecimal())


def server_of(told: Fields) -> ServerStatus:
    port = told.text("port")
    return ServerStatus(
        name=told.text("name"),
        state=told.text("state"),
        attempt=told.integer("attempt") or 0,
        since=told.number("since"),
        gpus=told.text("gpus"),
        port=int(port) if port.isdecimal() and len(port) <= 5 else None,
        cause=told.text("cause"),
        why=told.text("why"),
    )


def server_document(server: ServerStatus) -> dict[str, Any]:
    return {
        "name": server.name,
        "state": server.state,
        "attempt": server.attempt,
        "since": server.since,
        "gpus": list(server.indexes),
        "port": server.port,
        "cause": server.cause or None,
        "why": server.why or None,
    }


def of_kind(servers: tuple[ServerStatus, ...], kind: str) -> tuple[ServerStatus, ...]:
    """Those that a grid calls so: one, or one for each GPU."""
    return tuple(one for one in servers if one.name == kind or one.name.startswith(f"{kind}-gpu"))
