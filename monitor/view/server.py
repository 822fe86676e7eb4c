"""The server of the page: whatever its pages ask for. Handlers run in threads of their own."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from threading import Lock, Thread
from time import monotonic
from typing import TYPE_CHECKING, Any

from markupsafe import Markup
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from comborun.errors import UserError
from comborun.monitor.explain import was_stopped
from comborun.monitor.view import pages
from comborun.monitor.view.access import FILE_POLICY, REPORT_POLICY, Access, Guard
from comborun.monitor.view.feed import Feed
from comborun.monitor.view.files import Files, body_of
from comborun.monitor.view.records import (
    Renewed,
    ReportSoFar,
    Rollout,
    alike,
    choose,
    elsewhere,
    report_so_far,
    rollouts,
    videos_there,
)
from comborun.remote.fetch import FetchOptions
from comborun.remote.logs import newest_events
from comborun.remote.transport import LOCAL
from comborun.rules.names import DEFAULT_ROOT
from comborun.text import harmless

if TYPE_CHECKING:
    from starlette.requests import Request

    from comborun.monitor.fleet import Fleet, FleetRow
    from comborun.monitor.watch import Look
    from comborun.rules.events import Event

_LISTED = 60
"""sessions in the list, unless the user wants all: with 500 a tab would work for seconds"""
_CACHED = 24
"""rendered pages of the newest look"""
_FIRST_LOOK_S = 2.0
"""seconds that a page waits for the first look at the run: without it, it has the plan alone"""
_ORDER_S = 120.0
_UNUSED_S = 30.0
"""seconds for which all hosts are looked at after a page has shown their runs"""
_REPORTS = ("report.html", "report.md", "final_benchmark_report.json", "episodes.csv")
_VERBS = ("retry", "stop", "resume", "slots")


class AllHosts:
    """The runs of all hosts: they are looked at while a page shows them, and for a while after that."""

    def __init__(self, start: Callable[[], Fleet]) -> None:
        """`start` begins to look at all hosts; it may take a while."""
        self._start = start
        self._lock = Lock()
        self._asked, self._going = 0.0, False
        self._rows: tuple[FleetRow, ...] = ()
        self._silent: dict[str, str] = {}
        self._answered = False
        self.number = 0
        """grows with each change"""

    def need(self) -> int:
        """A page shows them. Returns the number of what is known."""
        with self._lock:
            self._asked = monotonic()
            if not self._going:
                self._going = True
                Thread(target=self._work, daemon=True).start()
        return self.number

    def values(self) -> dict[str, Any]:
        rows = sorted(self._rows, key=lambda row: row.run.finished)
        return {"runs": rows, "silent": self._silent, "busy": not self._answered}

    def _work(self) -> None:
        try:
            fleet = self._start()
            try:
                while monotonic() < self._asked + _UNUSED_S:
                    if fleet.wait(1.0) or not self.number:
                        self._rows, self._answered = fleet.rows(), fleet.answered
                        self._silent = {one.host: one.complaint for one in fleet.listings() if one.complaint}
                        self.number += 1
            finally:
                fleet.close()
                fleet.disconnect()
        finally:
            self._going = False  # the next page begins anew


class Server:
    def __init__(self, feed: Feed, access: Access, site: pages.Site, fleet: Callable[[], Fleet]) -> None:
        """`fleet` begins to look at the runs of all hosts."""
        self._feed = feed
        self._access = access
        self._site = site
        self._kept: OrderedDict[tuple[object, ...], tuple[str, str]] = OrderedDict()
        self._stops: dict[tuple[str, int], Sequence[Event]] = {}
        """a stopped session and its attempt -> what the run's events said after that"""
        self._rendering = Lock()
        self._life: object = None
        local = feed.watcher.source.transport.host == LOCAL
        self._episodes: Renewed[tuple[Rollout, ...]] = Renewed((), 4.0 if local else 20.0)
        self._report = Renewed(ReportSoFar(), 30.0)
        self._hosts = AllHosts(fleet)
        self._files = Files(feed, self._records, lambda: {row.video for row in self._episodes.value})
        self._scratch = TemporaryDirectory(prefix="comborun-view-")
        """0700; the report is written there"""
        Thread(target=pages.compile_templates, daemon=True).start()

    def app(self) -> Guard:
        of_run = [
            *(Route(f"/{'' if name == 'run' else name}", self._page) for name in pages.SCREENS if name != "cell"),
            Route("/cell/{name}", self._page, name="cell"),
            *self._files.routes(),
            Route("/whole/{name}", self._whole),
            Route("/act", self._act, methods=["POST"]),
            Route("/{other:path}", self._page),
        ]
        static = Mount("/static", StaticFiles(directory=pages.HERE / "static"))
        app = Starlette(routes=[static, Mount(f"/{self._access.folder}", routes=of_run)])
        app.add_middleware(GZipMiddleware, minimum_size=1000)
        return Guard(app, self._access, self._sign_in)

    def close(self) -> None:
        self._feed.watcher.close()
        self._scratch.cleanup()

    # Who may come in

    async def _sign_in(self, scope: Any, receive: Any, send: Any) -> None:
        from starlette.requests import Request

        request = Request(scope, receive)
        if request.method == "POST":
            word = (await body_of(request)).decode("utf-8", "replace")
            opened = request.url.path == f"{self._access.base}key" and self._access.opens(word)
            headers = {"set-cookie": self._access.cookie} if opened else {}
            await Response(status_code=204 if opened else 403, headers=headers)(scope, receive, send)
            return
        if request.headers.get("x-part") or not request.url.path.startswith(self._access.base):
            await PlainTextResponse("the key is missing", 401)(scope, receive, send)
            return
        text = pages.templates().get_template("key.html.j2").render(site=self._site)
        visits = request.headers.get("sec-fetch-dest") == "document"  # browsers log a 401 as an error
        await HTMLResponse(text, 200 if visits else 401)(scope, receive, send)

    # Screens

    def _page(self, request: Request) -> Response:
        part = bool(request.headers.get("x-part"))
        if not part:
            self._feed.watcher.wait(0, _FIRST_LOOK_S)
        life, look = self._feed.look()
        path = request.url.path.removeprefix(self._access.base)
        screen = path.partition("/")[0] or "run"
        looked = _number(request.headers.get("x-looked", ""))
        renewed = {"rollouts": self._renewed_episodes, "report": self._renewed_report}.get(screen)
        number = renewed(look) if renewed else self._hosts.need() if screen == "hosts" else 0
        key = (life, number, path, request.url.query, round(looked), self._files.asked)
        with self._rendering:  # ten pages that ask at once share one
            if life != self._life:
                self._life = life
                self._kept.clear()
            if key not in self._kept:
                values = self._values(screen, request, look, looked)
                if values is None:
                    return self._missing(look, part=part)
                text = pages.render(f"{screen}.html.j2", self._site, look, screen, **values)
                self._kept[key] = f'"{sha256(text.encode()).hexdigest()[:20]}"', text
                while len(self._kept) > _CACHED:
                    self._kept.popitem(last=False)
            tag, text = self._kept[key]
        if not part:
            frame = {"said": self._feed.said(), "tag": tag, "main": Markup(text)}  # noqa: S704 - templates escape
            text = pages.render("page.html.j2", self._site, look, screen, **frame)
        headers = {"etag": tag, "x-said": json.dumps(self._feed.said()), "vary": "x-part", "cache-control": "no-store"}
        if part and request.headers.get("if-none-match", "").removeprefix("W/") == tag:
            return Response(status_code=304, headers=headers)
        return HTMLResponse(text, headers=headers)

    def _missing(self, look: Look, *, part: bool) -> Response:
        text = Markup('<p>This run has no such page. <a href="{}">Back to the run</a></p>').format(
            self._site.link("run")
        )
        frame = {"said": self._feed.said(), "tag": "", "main": text}
        whole = "" if part else pages.render("page.html.j2", self._site, look, "", **frame)
        return HTMLResponse(whole or text, 404, {"cache-control": "no-store"})

    def _values(self, screen: str, request: Request, look: Look, looked: float) -> dict[str, Any] | None:
        asked = request.query_params
        if screen not in pages.SCREENS:
            return None
        if screen == "run":
            most = None if asked.get("all") else _LISTED
            return {**pages.of_run(look, asked.get("q", "")[:200], most), "news": pages.news(look.status, looked)}
        if screen == "cell":
            name = request.path_params.get("name", "")
            return pages.of_cell(look, name, self._happened(look, name))
        if screen == "host":
            return pages.of_hosts(look, self._feed.gpu_histories(), _number(asked.get("hours", "")))
        if screen == "hosts":
            return self._hosts.values()
        if screen == "report":
            return {"report": self._report.value, "busy": self._report.busy, "complaint": self._report.complaint}
        rows = self._episodes.value
        wanted = {name: asked.get(name, "") for name in ("show", "policy", "environment")}
        found, count = choose(rows, wanted["show"], wanted["policy"], wanted["environment"])
        one = next((row for row in rows if row.key == asked.get("at")), None)
        if one is None and not asked.get("at"):
            one = next((row for row in found if row.playable), None)
        beside = alike(rows, one, look.view.plan.policies) if one else []
        shown = {row.policy for row in beside}
        others = (each.policy for each in look.view.plan.current if one and each.environment == one.environment)
        return {
            "rows": found, "count": count, "wanted": wanted, "one": one, "groups": (),
            "beside": beside,
            "lacking": [policy for policy in dict.fromkeys(others) if policy not in shown],
            "here": self._files.here, "busy": self._episodes.busy, "complaint": self._episodes.complaint,
            "made": self._episodes.number, "neighbours": _neighbours(found, one),
        }  # fmt: skip

    def _happened(self, look: Look, name: str) -> Sequence[Event]:
        """The events that say who stopped a session, if it was stopped."""
        attempts = look.history.of(name)
        if not was_stopped(attempts) or not look.at(name).status.link.reachable:
            return ()
        key = name, attempts[-1].number
        if key not in self._stops:
            source = self._feed.watcher.source.at(name)
            try:
                self._stops[key] = newest_events(source.transport, source.view.directory)
            except UserError:  # the next page asks again
                return ()
        return self._stops[key]

    # What is read from records

    def _records(self) -> Path:
        """The folder of the records on this machine, after copying what is new. Raises HostError, UserError."""
        return self._feed.watcher.source.records(FetchOptions(watched=True))

    def _renewed_episodes(self, look: Look) -> object:
        status = look.status

        def read() -> tuple[Rollout, ...]:
            there = videos_there(self._feed.watcher.source.by_host(), look)
            return elsewhere(rollouts, self._records(), status.now or 0.0, there)

        self._episodes.ask(_stamp(look), read)
        return self._episodes.number, self._episodes.busy

    def _renewed_report(self, look: Look) -> object:
        folder = Path(self._scratch.name) / "report"
        self._report.ask(_stamp(look), lambda: elsewhere(report_so_far, self._records(), folder))
        return self._report.number, self._report.busy

    def _whole(self, request: Request) -> Response:
        """The whole report, as a file of its own."""
        name = request.path_params["name"]
        path = Path(self._scratch.name) / "report" / name
        if name not in _REPORTS or not path.is_file():
            return PlainTextResponse("there is no such report yet", 404)
        policy = REPORT_POLICY if name.endswith("html") else FILE_POLICY
        kind = "text/html" if name.endswith("html") else "text/plain"
        return FileResponse(path, media_type=f"{kind}; charset=utf-8", headers={"content-security-policy": policy})

    # Orders

    async def _act(self, request: Request) -> Response:
        if not self._site.acts:
            return PlainTextResponse("this page only shows: `combo view --act` also gives orders", 403)
        try:
            asked = json.loads(await body_of(request))
            words = self._command(asked["verb"], asked.get("sessions", []), asked.get("count"))
        except (ValueError, KeyError, TypeError, AttributeError):
            return PlainTextResponse("there is no such order", 400)
        done = await run_in_threadpool(_ordered, words)
        self._feed.refresh()
        return JSONResponse(done)

    def _command(self, verb: str, sessions: list[str], count: object) -> list[str]:
        """The words of a command. Raises ValueError for anything but sessions of this run and a small number."""
        view = self._feed.watcher.source.view
        known = {one.name for one in view.plan.sessions}
        if verb not in _VERBS or not isinstance(sessions, list) or not set(sessions) <= known:
            raise ValueError(verb)
        options = shlex.split(self._site.options)
        root = str(PurePosixPath(view.directory).parent)
        if view.host == LOCAL and root != str(Path(DEFAULT_ROOT).expanduser()):
            options += ["--root", root]
        if verb == "slots":
            if type(count) is not int or not 1 <= count <= 10_000:
                raise ValueError(count)
            return ["slots", str(count), "--run", view.id, *options]
        if verb == "retry" and not sessions:
            return ["retry", "--failed", "--run", view.id, *options]
        return [verb, *(["--yes"] if verb == "stop" else []), "--run", view.id, *options, "--", *sessions]


def _ordered(words: list[str]) -> dict[str, Any]:
    """Give the order as the command does, with its words."""
    command = [sys.executable, "-m", "comborun", *words]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_ORDER_S, check=False)
    except subprocess.TimeoutExpired:
        return {"done": False, "words": f"no answer within {_ORDER_S:.0f} s: it may still be carried out"}
    said = (done.stdout + done.stderr).decode("utf-8", "replace").strip()
    return {"done": done.returncode == 0, "words": harmless(said, keep="\n")[:2000]}


def _stamp(look: Look) -> object:
    """It changes when the episodes and the report may have changed."""
    return look.status.done, look.status.recorded, tuple(look.status.counts().items())


def _number(text: str) -> float:
    with suppress(ValueError):
        return min(max(float(text), 0.0), 1e12) if len(text) < 30 and text != "nan" else 0.0
    return 0.0


def _neighbours(rows: list[Rollout], one: Rollout | None) -> tuple[str, str]:
    """The keys before and after an episode in the list."""
    keys = [row.key for row in rows]
    if one is None or one.key not in keys:
        return "", keys[0] if keys else ""
    at = keys.index(one.key)
    return keys[at - 1] if at else "", keys[at + 1] if at + 1 < len(keys) else ""


def serve(app: Callable[..., Any], listening: Any, told: Callable[[], object]) -> None:
    """Answer until Ctrl-C. `told` is called once connections are taken. Nothing is logged: addresses are secrets."""
    import uvicorn

    class Told(uvicorn.Server):
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets=sockets)
            told()

    config = uvicorn.Config(
        app, access_log=False, log_level="critical", server_header=False, lifespan="off", timeout_graceful_shutdown=1
    )
    Told(config).run(sockets=[listening])
