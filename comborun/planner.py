"""Lay a grid out for a host: its combos become sessions, in the order in which they are to start."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from comborun.command import fill, word
from comborun.errors import UserError
from comborun.names import session_name
from comborun.plan import After, BashWord, Limits, Plan, Session

if TYPE_CHECKING:
    from comborun.facts import HostFacts
    from comborun.grid import Axis, Combo, Grid, Settings


def lay_out(grid: Grid, host: HostFacts, shipped: str = "") -> Plan:
    """The plan of `grid` for `host`. Pure: the same arguments give the same plan, byte for byte.

    `shipped` is the digest of all that `sync` puts there: other files are other work.
    """
    sessions = tuple(_session(combo, grid, host) for combo in grid.combos)
    gpus = _gpus(grid, host, sessions)
    after = _after(grid, host)
    return Plan(
        grid=grid.name,
        sessions=sessions,
        limits=Limits(
            parallel=grid.limits.parallel or max(1, min(len(sessions), host.cpus)),
            per_gpu=grid.limits.per_gpu or len(sessions),
            stagger=grid.limits.stagger,
            attempts=grid.limits.attempts,
        ),
        gpus=gpus,
        after=after,
        poll=grid.poll,
        digest=_digest([session.digest for session in sessions], after and asdict(after), shipped, [*grid.secrets]),
        replaces=grid.replaces,
        secrets=tuple(grid.secrets.items()),
    )


def not_taken_over(before: Plan, now: Plan) -> tuple[str, ...]:
    """What a grid says otherwise than the plan of its run, which goes on as it was planned: a sentence each."""
    told = {
        "limits.per_gpu": (before.limits.per_gpu, now.limits.per_gpu),
        "limits.stagger": (before.limits.stagger, now.limits.stagger),
        "limits.attempts": (before.limits.attempts, now.limits.attempts),
        "use_gpus": (before.gpus, now.gpus),
        "poll": (before.poll, now.poll),
        "progress": tuple([session.progress for session in plan.sessions] for plan in (before, now)),
    }
    return tuple(
        f"{key} has changed, and this run keeps what it was planned with" for key, (a, b) in told.items() if a != b
    )


def _session(combo: Combo, grid: Grid, host: HostFacts) -> Session:
    settings = combo.settings
    name = session_name(combo.environment.name, combo.policy.name)
    values = _values("policy", combo.policy) | _values("environment", combo.environment)
    values |= {"session": name, "seed": str(settings.seed)}
    session = Session(
        name=name,
        policy=combo.policy.name,
        environment=combo.environment.name,
        unit=settings.unit,
        first=settings.first_episode,
        count=settings.episodes or 0,
        seed=settings.seed,
        command=fill(settings.command, values),
        setup=settings.setup,
        workdir=_workdir(settings, grid, host),
        variables=_variables(settings),
        gpus=settings.gpus,
        results=settings.results,
        digest="",
        progress=settings.progress,
    )
    work = {key: value for key, value in asdict(session).items() if key != "progress"}
    return replace(session, digest=_digest(work))


def _values(kind: str, axis: Axis) -> dict[str, str]:
    return {kind: axis.name, **{f"{kind}.{key}": value for key, value in axis.attributes.items()}}


def _variables(settings: Settings) -> tuple[tuple[str, BashWord], ...]:
    return tuple((name, word(_literal(value), {})) for name, value in settings.variables.items())


def _literal(text: str) -> str:
    """Braces of a value that takes no placeholders, protected from being read as such."""
    return text.replace("{", "{{")


def _workdir(settings: Settings, grid: Grid, host: HostFacts) -> BashWord | None:
    if settings.workdir is None:
        return None
    folder = settings.workdir
    if not folder.startswith(("/", "~")):
        if not host.local:
            raise UserError(
                f"workdir {folder!r} is relative, and {host.host} has no folder of this grid file",
                "give the folder on the host: ~/... or /...",
            )
        folder = str((grid.path.parent / folder).resolve())
    return word(_literal(folder + "/" if folder == "~" else folder), {})


def _after(grid: Grid, host: HostFacts) -> After | None:
    if grid.after is None:
        return None
    settings = grid.settings
    return After(fill(grid.after, {}), settings.setup, _workdir(settings, grid, host), _variables(settings))


def _gpus(grid: Grid, host: HostFacts, sessions: tuple[Session, ...]) -> tuple[int, ...]:
    most = max((session.gpus for session in sessions), default=0)
    if not most:
        return ()
    allowed = tuple(gpu for gpu in host.gpus if grid.use_gpus is None or gpu in grid.use_gpus)
    if most > len(allowed):
        raise UserError(
            f"a session asks for {most} GPU{'s' if most > 1 else ''}, and {host.host} offers {len(allowed)}"
            f" (found: {list(host.gpus)}, use_gpus: {list(grid.use_gpus) if grid.use_gpus else 'all'})",
            "lower resources.gpus, widen use_gpus, or check `nvidia-smi -L` on the host",
        )
    return allowed


def _digest(*content: object) -> str:
    text = json.dumps(content, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
