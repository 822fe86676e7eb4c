"""The hosts of a run on several, with the host program of each, and without ssh."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from comborun.api import joint, moving
from comborun.api.named import Target
from comborun.errors import HostError, UserError
from comborun.host.record import deals
from comborun.host.verb_errors import Refusal
from comborun.host.verbs.boxes import Box
from comborun.remote import boxes, run_orders
from comborun.remote.boxes import BoxState
from comborun.rules.deal import Deal, Era, Move, Stops
from comborun.rules.names import RunLayout

HOSTS = ("a", "b", "c")
SESSIONS = tuple(f"s{number}" for number in range(6))


class Killed(BaseException):
    """Whoever gives orders ends here."""


class Hosts:
    """The host program of each host, without ssh. `trouble` is asked before and after each order."""

    def __init__(self, place: Path) -> None:
        of = {name: HOSTS[number % 3] for number, name in enumerate(SESSIONS)}
        deal = Deal({"grid_run": "g", "box": "a", "number": [0, 0], "boxes": [*HOSTS], "of": of, "lost": {}})
        self.layouts = {host: RunLayout(str(place / host)) for host in HOSTS}
        for host, layout in self.layouts.items():
            for folder in (layout.dispatch, f"{layout.directory}/boxes"):
                Path(folder).mkdir(parents=True)
            Path(layout.id).write_text(f"run-{host}\n")
            Path(layout.queue).write_text("".join(json.dumps({"name": name}) + "\n" for name in SESSIONS))
            Path(layout.deal).write_text(deal.at(host).text)
        self.orders: list[tuple[str, str]] = []
        self.old, self.away = set[str](), set[str]()
        self.started: list[str] = []
        self.trouble: Callable[[], None] = lambda: None
        self.parts: dict[str, Target] = {
            host: Target(SimpleNamespace(host=host), f"run-{host}", layout.directory)  # type: ignore[arg-type]
            for host, layout in self.layouts.items()
        }

    def ask(self, transport: Any, directory: str, verb: str, action: str, *words: str, stdin: bytes = b"") -> Any:
        self.trouble()
        if transport.host in self.away:
            raise HostError("away")
        self.orders.append((transport.host, action))
        if transport.host in self.old and action not in {"look", "take"}:
            raise UserError("usage", code="wrong_usage")
        given = json.loads(stdin) if stdin else {}
        acts: dict[str, Callable[[Box], Any]] = {
            "look": lambda box: box.look(),
            "stop": lambda box: box.stop(int(words[0])),
            "fence": lambda box: box.fence(Era(int(words[0]), words[1]), words[2:]),
            "lose": lambda box: box.lose(Deal(given)),
            "take": lambda box: box.take(Deal(given), Stops(given["stop"], given["resumed"])),
            "moving": lambda box: box.let_move(Deal(given)),
            "release": lambda box: box.release(Move(given)),
            "receive": lambda box: box.receive(Move(given)),
        }
        try:
            with deals.locked(RunLayout(directory)):
                answer = json.loads(json.dumps(acts[action](Box(directory))))
        except Refusal as refused:
            raise UserError(str(refused.fact.code), code=str(refused.fact.code)) from None
        self.trouble()
        return answer

    def states(self) -> dict[str, BoxState]:
        return {host: boxes.look(*part.place) for host, part in self.parts.items()}

    def owners(self) -> dict[str, list[str]]:
        """Session -> the hosts that would start it."""
        return {
            name: [host for host, layout in self.layouts.items() if deals.runs_here(layout, name)] for name in SESSIONS
        }

    def claim(self, host: str, name: str) -> None:
        with deals.claiming(self.layouts[host], name):
            at = Path(self.layouts[host].attempt(name, 1).claim)
            at.parent.mkdir(parents=True)
            at.touch()


def hosts_at(place: Path, monkeypatch: pytest.MonkeyPatch) -> Hosts:
    """Orders of this process go to them."""
    made = Hosts(place)
    monkeypatch.setattr(run_orders, "ask", made.ask)
    monkeypatch.setattr(deals, "to_disk", lambda _: None)

    def restarted(part: Any, sessions: int) -> str:
        made.started.append(part.transport.host)
        return f"{sessions} run"

    monkeypatch.setattr(moving, "restarted", restarted)
    monkeypatch.setattr(joint, "restarted", restarted)
    return made
