"""`session.json`: what the supervisor of a session has to know beside its script. Pure.

A key is there only where it differs from what the supervisor does by itself.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from comborun.rules.names import AFTER
from comborun.session.display import DEFAULT_GEOMETRY
from comborun.session.furnishing import asks_for
from comborun.session.judging import judging

if TYPE_CHECKING:
    from comborun.plan import Session
    from comborun.servers import Server
    from comborun.session.display import Display


def session_data(session: Session) -> str:
    around, watch = session.around, session.watch
    return _text(
        name=session.name,
        unit=session.unit,
        first=session.first,
        count=session.count,
        judging=judging(session),
        success=success_pattern(session.results.success),
        hang_s=watch.hang_s,
        stall_s=watch.stall_s or None,
        max_s=watch.max_s or None,
        progress=session.progress.pattern or None,
        signatures=[list(signature) for signature in session.failures],
        pin=None if session.pin == "cvd" else session.pin,
        wants_port=asks_for(session, "port"),
        wants_egl=asks_for(session, "egl_device"),
        display=_display(session.display) if session.display else None,
        servers=[name for name, _ in session.servers],
        files=bool(around.files),
        container=around.container.runtime if around.container else None,
    )


def server_data(name: str, server: Server) -> str:
    warm = server.warm_up
    return _text(
        name=name,
        unit="step",
        first=0,
        count=0,
        pin=None if server.pin == "cvd" else server.pin,
        wants_port=True,
        ready=[check.line() for check in server.ready],
        ready_within_s=server.ready_within_s,
        warm_up=["POST" if warm.body else "GET", warm.path, warm.media_type, warm.within_s, warm.body]
        if warm
        else None,
        health_s=server.health_s,
        health_misses=server.misses,
    )


def after_data() -> str:
    return _text(name=AFTER, unit="step", first=0, count=0)


def _display(display: Display) -> dict[str, str]:
    geometry = {} if display.geometry == DEFAULT_GEOMETRY else {"geometry": display.geometry}
    return {"word": display.word(), **geometry}


def success_pattern(field: str) -> str:
    """The extended regular expression that finds a successful JSON record: field true, 1, 1.0 or "true" in any case.

    For what of the host still counts records in bash.
    """
    return rf'"{re.escape(field)}" *: *(true|1(\.0*)?|" *[Tt][Rr][Uu][Ee] *") *[,}}]'


def _text(**values: Any) -> str:
    told = {key: value for key, value in values.items() if value is not None and value is not False and value != []}
    return json.dumps(told, indent=1, ensure_ascii=False) + "\n"
