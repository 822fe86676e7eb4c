"""What stands around the sessions of a plan: values of variables, displays, threads, and what has to warm up. Pure."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING

from comborun.command import FILLED, OF_GPUS, PLAN_TIME, START_TIME, fillable, late, placeholders, word
from comborun.errors import UserError
from comborun.planner.packing import Task, capacity, fits
from comborun.servers import ASKED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from comborun.grid import Grid
    from comborun.plan import Plan, Session
    from comborun.resources import BashWord, HostFacts

_SCRIPTS = (".py", ".sh")


def filled(variables: Mapping[str, str], values: Mapping[str, str]) -> tuple[tuple[str, BashWord], ...]:
    """Variables with the placeholders that there are; `values` holds the plan-time ones. Any other brace is text, even
    two of them, because values may be JSON or a template."""
    return tuple((name, word(_escaped(text, values), values)) for name, text in variables.items())


def unfilled(variables: Mapping[str, str]) -> tuple[tuple[str, BashWord], ...]:
    """Those that hold no placeholder: `after` and `notify` run for all sessions, and have no use for the others."""
    return tuple((name, word(text.replace("{", "{{"), {})) for name, text in variables.items() if not _names(text))


def _names(text: str) -> bool:
    found = (name for piece in fillable(text) for name in placeholders(piece))
    return any(name.partition(".")[0] in {*PLAN_TIME, *START_TIME, "server", "file"} for name in found)


def _escaped(text: str, values: Mapping[str, str]) -> str:
    """The text as `word` reads an argument."""
    parts: list[str] = []
    position = 0
    for match in FILLED.finditer(text):
        if match.group()[1:-1] in {*START_TIME, *values} or ASKED.fullmatch(match.group()):
            parts += [text[position : match.start()].replace("{", "{{"), match.group()]
            position = match.end()
    return "".join([*parts, text[position:].replace("{", "{{")])


def furnished(session: Session) -> Session:
    """With its display as something that it may have to have alone, and without variables that stand for nothing."""
    absent = [name for name in OF_GPUS if not session.gpus] + ([] if session.display else ["display"])
    variables = tuple((name, text) for name, text in session.variables if not any(late(text, one) for one in absent))
    token = session.display.token if session.display else ""
    tokens = (*session.request.tokens, token) if token else session.request.tokens
    return replace(session, variables=variables, request=replace(session.request, tokens=tokens))


def check_displays(plan: Plan) -> None:
    """Raise UserError when a session may be granted a GPU for which its `display` names no X server."""
    for session in plan.sessions:
        named = {gpu for gpu, _ in session.display.by_gpu} if session.display else set()
        bare = [gpu for gpu in session.request.only or plan.gpus if gpu not in named]
        if named and bare:
            raise UserError(
                f"`display` names no X server for GPU {', '.join(map(str, bare))}, which {session.name} may be granted",
                f"add it, or keep to the others: use_gpus: {sorted(named)}",
            )


def with_threads(plan: Plan, grid: Grid, host: HostFacts) -> Plan:
    """Each session with as many threads as it has cores: those it asks for, or its share when as many run as can.
    Ranks of a launcher share them."""
    wished = {(combo.policy.name, combo.environment.name): combo.settings.threads for combo in grid.combos}
    fitting = fits([Task.of(session) for session in plan.sessions], capacity(plan, host))[0]
    share = max(1, plan.cpus // max(1, min(fitting or plan.limits.parallel, plan.limits.parallel)))
    sessions = []
    for session in plan.sessions:
        threads = wished[session.policy, session.environment]
        if threads is None:
            threads = max(1, (session.request.cpus or share) // max(1, session.around.ranks))
        sessions.append(replace(session, threads=threads))
    return replace(plan, sessions=tuple(sessions))


def kind(session: Session) -> str:
    """A clean word that sessions of one program in the same surroundings share: they warm up the same caches."""
    program = session.command[:1]
    if len(session.command) > 1 and session.command[1].strip("'\"").endswith(_SCRIPTS):
        program = session.command[:2]
    content = "\0".join((session.setup, session.workdir or "", *program))
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:8]
