"""What the supervisor tells its watch."""

from __future__ import annotations

from comborun.host import judging
from comborun.host.watch import Job, Watch, limits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from comborun.host.attempt import Attempt
    from comborun.host.health import Health


def job(of: Attempt) -> Job:
    """The attempt, and its rules."""
    data = of.data
    made = Job(of.run_layout.directory, of.run_id, of.family or "sessions", of.name, of.number)
    made.pid, made.start = of.pid, of.start
    made.gpus = tuple(of.gpus.split(",")) if of.gpus else ()
    made.pinned = data.get("pin") != "none"
    made.limits = limits(hang=data.get("hang_s", 120), stall=data.get("stall_s", 0), most=data.get("max_s", 0))
    made.unit, made.count, made.pattern = data.get("unit", ""), of.count, data.get("progress", "")
    made.awaits = bool(of.grant.get("await"))
    made.served_by = of.grant.get("served_by", "")
    if "judging" in data:
        made.judging = judging.Watched(of.at, of.rules())
    made.tell = of.tell
    return made


def over(of: Attempt) -> Watch | Health:
    """The watch over its command, or over a model server."""
    data = of.data
    if "ready" not in data:
        return Watch(job(of))
    from comborun.host.health import Health, Server

    server = Server(int(of.port or 0), data["ready"])
    server.ready_within_s = data.get("ready_within_s", 0)
    server.health_s, server.health_misses = data.get("health_s", 10), data.get("health_misses", 6)
    server.warm_up = data.get("warm_up", ())
    return Health(job(of), server)
