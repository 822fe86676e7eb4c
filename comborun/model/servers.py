"""Model servers, which start before the sessions that use them: one of each, or one on each GPU. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from comborun.model.resources import NOTHING, BashWord, PinMode
from comborun.rules.names import SERVER_FIELDS, server_variable
from comborun.rules.room.capacity import Request

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

ASKED = re.compile(r"\{server\.(?P<name>[a-z][a-z0-9-]*)\.(?P<field>url|host|port)\}")
DEFAULT_HEALTH_S = 10
DEFAULT_MISSES = 6
"""more than one, because a busy server may miss a check"""
DEFAULT_RESTARTS = 3


@dataclass(frozen=True)
class ModelServer:
    name: str
    command: tuple[BashWord, ...]
    setup: str
    workdir: BashWord | None
    variables: tuple[tuple[str, BashWord], ...]
    gpus: int = 0
    each_gpu: bool = False
    """one for each GPU of `request.only`, or else of the plan; each serves the sessions of its GPU"""
    request: Request = NOTHING
    pin: PinMode = "cvd"
    ready: tuple[str, ...] = ("tcp",)
    """checks for comborun/host/supervise/health.py, which must all hold"""
    ready_within_s: int = 0
    """0: no limit"""
    warm_up: tuple[str, str, str, int, str] | None = None
    """a request before the first client's: method, path, media type, seconds that it may take, body"""
    health_s: int = DEFAULT_HEALTH_S
    """seconds between two checks of its health; 0: no checks"""
    misses: int = DEFAULT_MISSES
    """failed checks in a row after which it is ended"""
    restarts: int = DEFAULT_RESTARTS
    """most restarts in a row"""
    digest: str = ""
    """of its command: a part of the work of each session that uses it"""

    @property
    def resources(self) -> Request:
        return replace(self.request, gpus=self.gpus)

    def instances(self, gpus: Sequence[int]) -> tuple[ServerInstance, ...]:
        """Its processes on a host whose sessions may be granted `gpus`."""
        if not self.each_gpu:
            return (ServerInstance(self.name, None, self),)
        return tuple(ServerInstance(f"{self.name}-gpu{gpu}", gpu, self) for gpu in self.request.only or gpus)


def asked_by(texts: Iterable[str], servers: Sequence[ModelServer]) -> tuple[ModelServer, ...]:
    commands = list(texts)
    names = {one: [server_variable(one.name, field) for field in SERVER_FIELDS] for one in servers}
    return tuple(one for one in servers if any(name in text for name in names[one] for text in commands))


class ServerInstance(NamedTuple):
    """One process of a server on the host."""

    name: str
    gpu: int | None
    """the GPU whose sessions it serves; None: it serves all"""
    server: ModelServer

    @property
    def request(self) -> Request:
        asked = self.server.resources
        return asked if self.gpu is None else replace(asked, only=(self.gpu,))
