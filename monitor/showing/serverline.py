"""What is told of the model servers of a run, and of who waits for them: pure."""

from __future__ import annotations

from rich.text import Text

from comborun.monitor.answer.servers import ServerStatus
from comborun.monitor.lastline import visible
from comborun.monitor.wording import brief

READY = "ready"
_WORDS = {
    "queued": "has not started",
    "starting": "is starting",
    "loading": "is loading",
    READY: "is ready",
    "silent": "does not answer",
    "ended": "has ended",
}
_STYLES = {READY: "green", "loading": "cyan", "starting": "cyan", "silent": "yellow", "ended": "yellow"}
SERVER_SIGNS = {READY: "●", "loading": "○", "starting": "○", "silent": "!", "ended": "!"}


def happening(server: ServerStatus, now: float | None) -> str:
    """`is loading for 3 min`, `has ended 20 s ago (signal)`."""
    word = _WORDS.get(server.state, visible(server.state))
    if server.since is not None and now is not None:
        lasting = brief(max(0.0, now - server.since))
        word += f" {lasting} ago" if server.state == "ended" else f" for {lasting}"
    if server.state == "ended":
        word += f" ({visible(server.cause)}{': ' if server.why else ''}{visible(server.why)})"
    return word


def server_line(server: ServerStatus, now: float | None, detail: str, width: int) -> Text:
    """One line of the table; `detail` is what it waits for."""
    style = _STYLES.get(server.state, "dim")
    line = Text.assemble(("server  ", "dim"), (f"{SERVER_SIGNS.get(server.state, '·')} {visible(server.name)}", style))
    line.append(f" {happening(server, now)}")
    if server.port and server.state in {READY, "silent"}:
        line.append(f" on port {server.port}", "dim")
    if server.gpus:
        line.append(f"  GPU {server.gpus}", "dim")
    if server.attempt > 1:
        line.append(f"  start {server.attempt}", "dim")
    if detail and server.state in {"queued", "ended"}:
        line.append(f"  waits: {visible(detail)}", "dim")
    line.truncate(width, overflow="ellipsis")
    return line
