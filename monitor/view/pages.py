"""The screens of the page, from facts to HTML: what each template gets, and the addresses. Pure, but for templates.

Everything that a template shows is escaped by it; control characters are taken out here or by a filter.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from comborun.monitor.causes import shared_causes
from comborun.monitor.explain import explanation
from comborun.monitor.grid_map import the_map
from comborun.monitor.rate_interval import exact_interval
from comborun.monitor.rows import Choice, chosen, no_key
from comborun.monitor.states import verdicts_of
from comborun.monitor.status import SUPERSEDED, RunStatus, SessionStatus
from comborun.monitor.view import drawing
from comborun.monitor.view.gpus import GpuHistory
from comborun.monitor.wording import MARKS, SERVER_MARKS, UNMARKED, by_urgency, clock_words, sizes, visible
from comborun.remote.launches import short
from comborun.rules.names import AFTER, RUN
from comborun.rules.vocabulary import Life, amount
from comborun.text import MIB, harmless, several
from comborun.words import say
from comborun.words.endings import class_words, outcome_words
from comborun.words.times import brief, clock, duration

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

    from comborun.monitor.watch import Look
    from comborun.rules.events import Event

HERE = Path(__file__).parent
SCREENS = {
    "run": "Run",
    "cell": "Cell",
    "rollouts": "Rollouts",
    "host": "Host",
    "report": "Report",
    "hosts": "All hosts",
}
_UNCOUNTED_MOST = 5
_CODED = re.compile("`([^`]+)`")
_RESUMABLE = {"run_was_stopped", "run_held", "dispatcher_gone", "dispatcher_gone_at_end", "nothing_has_started"}
"""advice that a resume follows"""


@dataclass(frozen=True)
class Site:
    """Where the pages are: below `base` of a server, or side by side in a folder of a bundle."""

    base: str = ""
    bundled: bool = False
    acts: bool = False
    """whether orders may be given"""
    options: str = ""
    """options with which a command finds the host"""
    files: Mapping[str, str] = field(default_factory=dict)
    """the files of a bundle by their paths in the run"""

    @property
    def screens(self) -> dict[str, str]:
        """A copy for others says nothing of other runs."""
        return {name: title for name, title in SCREENS.items() if name != "hosts" or not self.bundled}

    def link(self, screen: str, name: str = "", **query: str) -> str:
        asked = {key: value for key, value in query.items() if value}
        more = f"?{urlencode(asked)}" if asked else ""
        if self.bundled:
            words = "index" if screen == "run" else f"cell-{name}" if screen == "cell" else screen
            return f"{quote(words)}.html{more}"
        place = "" if screen == "run" else f"cell/{quote(name)}" if screen == "cell" else screen
        return f"{self.base}{place}{more}"

    def file(self, path: str) -> str:
        """The address of a file of the run, by its path there."""
        return quote(self.files[path]) if self.bundled else f"{self.base}files/{quote(path)}"

    def static(self, name: str) -> str:
        return name if self.bundled else f"/static/{name}?{_version(name)}"


@cache
def _version(name: str) -> str:
    return sha256((HERE / "static" / name).read_bytes()).hexdigest()[:12]


# The screens


def of_run(look: Look, words: str = "", most: int | None = None) -> dict[str, Any]:
    """`words`: a filter, as on the full screen. At most so many sessions are listed, the most urgent first."""
    status, found, causes = look.status, the_map(look.status), shared_causes(look.status)
    shown = tuple(one for one in status.sessions if one.part != SUPERSEDED or one.alive)
    listed = chosen(replace(status, sessions=shown, after=None), Choice(words), causes, folds=False)
    counts = {"fitting": len(listed), "all": len(shown), "no_key": "" if listed else no_key(words)}
    return {"environments": found.environments, "rows": found.rows, "listed": listed[:most], "causes": causes, **counts}


def of_cell(look: Look, name: str, events: Sequence[Event] = ()) -> dict[str, Any] | None:
    """None if there is no such session. `events` say who stopped it."""
    status, plan = look.status, look.view.plan
    session = next((one for one in plan.sessions if one.name == name), None)
    seen = next((one for one in status.every if one.name == name), None)
    if seen is None:
        return None
    attempts = look.history.of(name)
    names = [one.name for one in status.sessions if one.part != SUPERSEDED]
    at = names.index(name) if name in names else -1
    return {
        "seen": seen,
        "session": session,
        "attempts": attempts[::-1],
        "strip": drawing.strip(session, verdicts_of(session, seen, attempts)) if session else (),
        "explained": explanation(look, name, events),
        "previous": names[at - 1] if at > 0 else "",
        "next": names[at + 1] if 0 <= at < len(names) - 1 else "",
        "others": [one for one in status.sessions if session and one.environment == seen.environment],
    }


def of_hosts(look: Look, histories: Mapping[str, GpuHistory], hours: float) -> dict[str, Any]:
    parts = look.by_host().items()
    return {
        "hours": hours,
        "places": [of_host(part, histories.get(host) or GpuHistory(), hours) for host, part in parts],
    }


def of_host(look: Look, history: GpuHistory, hours: float) -> dict[str, Any]:
    status, now = look.status, look.status.now or 0.0
    since = max(now - hours * 3600, status.started or now - 3600) if hours else status.started or now - 3600
    alive = [one for one in status.sessions if one.alive]
    cards = [(card, [one for one in alive if card.index in one.gpus]) for card in status.use.gpus]
    return {
        "status": status,
        "cards": cards,
        "charts": [drawing.gpu_chart(history, card, since, now) for card in status.use.gpus],
        "lanes": drawing.slots(status, look.history, since, now),
        "servers": [(one, status.server_waits.get(one.name)) for one in status.servers],
        "labels": history.labels(since),
    }


def alerts(status: RunStatus) -> list[tuple[str, str, str]]:
    """What concerns the run as a whole: a state for its colour, words, and the order that helps, if any."""
    found = [("stalled", say(status.part), "")] if status.part else []
    if status.hold and not status.finished:
        since = f" since {clock(status.hold.since, near=status.now)}" if status.hold.since else ""
        how = f"`combo resume {status.run}` lets it go on"
        found.append(("failed", f"{status.hold.kind}{since}: {status.hold.words}; {how}", "resume"))
    if status.outage:
        found.append(("lost", say(status.outage.fact(status.host)), ""))
    away = [one for one in status.hosts if status.link.reachable and (one.lost or not one.link.reachable)]
    found += [("stalled", f"{visible(one.host)}: {one.link.absence}", "") for one in away]
    closed = (f"GPU {one.gpu} gets no new sessions: {class_words(one.failure)}" for one in status.quarantine)
    found += [("stalled", words, "resume") for words in closed]
    if status.disk_full:
        found.append(("failed", "the disk of the run is full", ""))
    advice = status.advice
    if advice and not (status.hold and advice.code == "run_held" and not status.finished):
        found.append(("stalled", harmless(say(advice)), "resume" if advice.code in _RESUMABLE else ""))
    said = (status.notify_problem, None if status.finished else status.slurm)
    words = [clock_words(status.ahead, status.host), *map(say, filter(None, said)), status.undecided]
    words += status.uncounted[:_UNCOUNTED_MOST]
    found += [
        ("queued", say(one), "") for one in (*status.back, status.would_move, status.following, status.moved) if one
    ]
    return [*found, *(("stalled", harmless(one), "") for one in words if one)]


def news(status: RunStatus, looked: float) -> list[tuple[str, list[SessionStatus]]]:
    """What has happened since a person looked: states, the most urgent first, and their sessions."""
    if not looked:
        return []
    found: dict[str, list[SessionStatus]] = {}
    for one in status.sessions:
        at = one.stalled if one.life is Life.STALLED else one.latest.end.ended if one.latest.end else None
        if at is not None and at > looked and one.word != Life.QUEUED:
            found.setdefault(one.word, []).append(one)
    return by_urgency(found)


# Templates


def render(template: str, site: Site, look: Look, screen: str, **values: object) -> str:
    vitals = {"site": site, "link": site.link, "look": look, "status": look.status, "view": look.view}
    return templates().get_template(template).render(screen=screen, screens=site.screens, **vitals, **values)


def coded(words: str) -> Markup:
    """A sentence, with what stands in backticks in it as code."""
    from markupsafe import Markup, escape

    return Markup(_CODED.sub(r"<code>\1</code>", str(escape(words))))  # noqa: S704 - it is escaped


def compile_templates() -> None:
    """So that the first page need not wait for it."""
    for name in ("page", *SCREENS):
        templates().get_template(f"{name}.html.j2")


@cache
def templates() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup, escape

    environment = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    own: tuple[Callable[..., object], ...] = (
        *(brief, clock, duration, amount, several, visible, harmless, sizes, clock_words, outcome_words),
    )
    environment.filters.update({function.__name__: function for function in own})
    environment.filters.update(
        interval=exact_interval,
        broken=lambda name: escape(name).replace("_", Markup("_<wbr>")),
        say=lambda fact: coded(harmless(say(fact))),
        coded=coded,
        short=short,
        quoted=shlex.quote,
        mib=lambda mib: amount(mib * MIB) if mib else "0 GiB",
        mark=lambda word: (MARKS.get(word) or SERVER_MARKS.get(word, UNMARKED)).symbol,
        svg=lambda panel: Markup(panel.svg()),  # noqa: S704 - its text is escaped
        percent=lambda share: f"{100 * share:.0f}",
    )
    environment.globals.update(
        parts=environment.get_template("parts.html.j2").module,
        chips=by_urgency,
        alerts=alerts,
        AFTER=AFTER,
        log_path=lambda name, number: RUN.attempt(name, number).log,
    )
    return environment
