"""The page's server: who may read and order, what files it gives, and what its answers say. Spoken to as ASGI."""

from __future__ import annotations

import asyncio
import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import pytest
from monitor_stage import NOW, Seen, StagedHost, a_plan, a_session, a_view, an_answer

from comborun.cli.view import tunnel_command
from comborun.errors import HostError
from comborun.monitor.fleet import FleetRow
from comborun.monitor.view import access, server
from comborun.monitor.view.access import Access, keep_access, kept_access, new_access
from comborun.monitor.view.feed import Feed
from comborun.monitor.view.files import _SEARCH
from comborun.monitor.view.pages import Site
from comborun.monitor.view.server import Server
from comborun.monitor.watch import Settings, Source
from comborun.remote.logs import _EVENTS, _PART
from comborun.remote.runs import Listing, Run
from comborun.remote.transport import Completed, LocalTransport

if TYPE_CHECKING:
    from comborun.monitor.fleet import Fleet

HOSTILE = "<script>alert(1)</script>"
KEYS = Access("k" * 32, "abcd1234", 8420)
PEOPLE = {"host": "127.0.0.1:8420", "cookie": f"combo-view={KEYS.key}"}
ORIGIN = {"origin": "http://127.0.0.1:8420"}
SESSION = "grass_flat"
OUT = f"sessions/{SESSION}/attempt-1/out"


class Answer(NamedTuple):
    code: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


@dataclass
class Browser:
    """Asks an ASGI application. Paths are sent as they are."""

    app: Any

    def ask(self, path: str, method: str = "GET", body: bytes = b"", headers: Mapping[str, str] = PEOPLE) -> Answer:
        path, _, query = path.partition("?")
        pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
        scope = {
            "type": "http", "asgi": {"spec_version": "2.4"}, "http_version": "1.1", "method": method,
            "path": path, "raw_path": path.encode(),
            "query_string": query.encode(), "root_path": "", "scheme": "http", "headers": pairs,
            "client": ("127.0.0.1", 5), "server": ("127.0.0.1", 8420),
        }  # fmt: skip
        sent: list[Any] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        asyncio.run(self.app(scope, receive, send))
        head = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        return Answer(sent[0]["status"], head, b"".join(one.get("body", b"") for one in sent[1:]))

    def get(self, place: str = "", **headers: str) -> Answer:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.ask(KEYS.base + place, headers={**PEOPLE, **named})

    def post(self, place: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        return self.ask(KEYS.base + place, "POST", body, headers)


class Box(StagedHost):
    """A host whose logs are real files."""

    def run(self, script: str, *args: str, **options: Any) -> Completed:
        return (
            LocalTransport().run(script, *args) if script in (_EVENTS, _PART, _SEARCH) else super().run(script, *args)
        )


@dataclass
class OneRun:
    """A fleet that has found a run, and a host that does not answer."""

    answered = True
    closed = 0

    def wait(self, seconds: float) -> bool:
        time.sleep(min(seconds, 0.05))
        return False

    def rows(self) -> tuple[FleetRow, ...]:
        run = Run(f"{HOSTILE}-20260729T101500Z-ab12", "/runs/it", {}, now={"episodes_done": 3, "episodes_planned": 8})
        return (FleetRow("far & away", run),)

    def listings(self) -> tuple[Listing, ...]:
        return (Listing("asleep", (), None, HOSTILE),)

    def close(self) -> None:
        self.closed += 1

    def disconnect(self) -> None:
        pass


@dataclass
class Stage:
    box: Box
    feed: Feed
    fleet: OneRun
    server: Server
    browser: Browser
    mirror: Path
    run: Path

    def looks(self) -> int:
        return len(self.box.asked)


def staged(tmp_path: Path, answers: list[Any], *, acts: bool = False) -> Stage:
    plan = a_plan([a_session("flat", "grass"), a_session(HOSTILE, "stairs")])
    box = Box(answers)
    view = a_view(plan, directory=str(tmp_path / "run"))
    feed = Feed(Source(box, view), Settings(60))
    feed.watcher.wait(0, 10)
    fleet = OneRun()
    made = Server(feed, KEYS, Site(KEYS.base, acts=acts), lambda: cast("Fleet", fleet))
    return Stage(
        box,
        feed,
        fleet,
        made,
        Browser(made.app()),
        tmp_path / "data" / "comborun" / "gpu-box" / view.id,
        tmp_path / "run",
    )


RUNNING = an_answer(Seen(SESSION, counts=(30, 20), log=b"episode 29\n"), Seen("stairs__script_alert_1___script_"))


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    found = staged(tmp_path, [RUNNING])
    yield found
    found.server.close()


@pytest.fixture
def acting(tmp_path: Path) -> Iterator[Stage]:
    found = staged(tmp_path, [RUNNING], acts=True)
    yield found
    found.server.close()


def test_the_cell_of_a_stopped_session_says_who_stopped_it(tmp_path: Path) -> None:
    stage = staged(tmp_path, [an_answer(Seen(SESSION).ended("stopped", "none"))])
    (stage.run / "dispatch").mkdir(parents=True)
    given = {"at": NOW - 2, "kind": "ordered", "order": "stop", "sessions": 2}
    (stage.run / "dispatch/events.jsonl").write_text(json.dumps(given) + "\n")
    people = {"at": NOW - 2, "user": "ann", "from": "10.0.0.7", "order": "stop"}
    (stage.run / "dispatch/people.jsonl").write_text(json.dumps(people) + "\n")
    shown = stage.browser.get(f"cell/{SESSION}").text
    stage.server.close()
    assert "by ann" in shown


EVERYTHING = (
    "",
    "cell/grass_flat",
    "rollouts",
    "host",
    "report",
    "hosts",
    f"log/{SESSION}/1",
    f"files/{OUT}/rows.jsonl",
    "whole/report.html",
)


@pytest.mark.parametrize("place", EVERYTHING)
@pytest.mark.parametrize("cookie", ["", "combo-view=", "combo-view=wrong", "other=" + KEYS.key])
def test_nothing_is_read_without_the_key(stage: Stage, place: str, cookie: str) -> None:
    answer = stage.browser.get(place, cookie=cookie)
    assert answer.code == 401
    assert "walkers" not in answer.text
    assert KEYS.key not in answer.text


def test_the_first_visit_is_no_error_in_the_console_of_a_browser(stage: Stage) -> None:
    answer = stage.browser.get("cell/grass_flat", cookie="", sec_fetch_dest="document")
    assert (answer.code, "walkers" in answer.text, "set-cookie" in answer.headers) == (200, False, False)
    assert stage.browser.get(f"log/{SESSION}/1", cookie="", sec_fetch_dest="empty").code == 401


def test_the_first_page_waits_for_the_first_look_and_what_is_new_does_not(stage: Stage) -> None:
    waits = list[float]()
    look = stage.feed.watcher.look
    stage.feed.watcher.wait = lambda after, seconds: (waits.append(seconds), look)[1]  # type: ignore[method-assign]
    stage.browser.get(x_part="1")
    assert not waits
    stage.browser.get()
    assert waits == [server._FIRST_LOOK_S]


def test_the_key_of_the_address_opens_with_a_cookie_that_no_script_and_no_other_site_gets(stage: Stage) -> None:
    other = {"host": PEOPLE["host"], **ORIGIN}
    wrong = stage.browser.post("key", b"x" * 32, other)
    assert (wrong.code, "set-cookie" in wrong.headers) == (403, False)
    opened = stage.browser.post("key", KEYS.key.encode(), other)
    assert opened.code == 204
    words = opened.headers["set-cookie"].split("; ")
    assert {"HttpOnly", "SameSite=Strict", f"Path={KEYS.base}"} <= set(words)
    assert stage.browser.get(cookie=words[0]).code == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8420", "127.0.0.1", "127.0.0.1:80", "127.0.0.1:8420.evil.example", "", "[::1]:8420"],
)
def test_another_host_is_refused_though_the_key_is_right(stage: Stage, host: str) -> None:
    assert stage.browser.get(host=host).code == 421


def test_an_order_needs_the_origin_of_the_page(acting: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[list[str]] = []
    monkeypatch.setattr(server, "_ordered", lambda words: given.append(words) or {"done": True, "words": ""})
    order = json.dumps({"verb": "retry", "sessions": [SESSION]}).encode()
    for origin in ({}, {"origin": "http://evil.example"}, {"origin": "null"}, {"origin": "http://localhost:8420"}):
        assert acting.browser.post("act", order, {**PEOPLE, **origin}).code == 403
    assert acting.browser.get("act").code == 404
    assert not given
    assert acting.browser.post("act", order, {**PEOPLE, **ORIGIN}).code == 200
    assert given[0][0] == "retry"
    assert given[0][-2:] == ["--", SESSION]


def test_a_page_that_only_shows_gives_no_orders(stage: Stage) -> None:
    order = json.dumps({"verb": "stop", "sessions": []}).encode()
    assert stage.browser.post("act", order, {**PEOPLE, **ORIGIN}).code == 403
    assert "data-act" not in stage.browser.get("cell/grass_flat").text


@pytest.mark.parametrize(
    "order",
    [
        {"verb": "clean"}, {"verb": "stop", "sessions": ["--all"]}, {"verb": "stop", "sessions": "grass_flat"},
        {"verb": "slots", "count": "4; rm"}, {"verb": "slots", "count": True}, {"verb": ["stop"]}, [], "x" * 5000,
    ],
)  # fmt: skip
def test_an_order_that_is_none_is_refused(acting: Stage, order: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_ordered", lambda words: pytest.fail(f"ordered {words}"))
    assert acting.browser.post("act", json.dumps(order).encode(), {**PEOPLE, **ORIGIN}).code == 400


def test_files_of_attempts_are_given_so_that_nothing_in_them_runs(stage: Stage) -> None:
    folder = stage.mirror / OUT
    folder.mkdir(parents=True)
    (folder / "page.html").write_text(HOSTILE)
    (folder / "drawing.svg").write_text(f"<svg>{HOSTILE}</svg>")
    (folder / "video.mp4").write_bytes(bytes(range(200)))
    for name in ("page.html", "drawing.svg", "video.mp4"):
        answer = stage.browser.get(f"files/{OUT}/{name}")
        assert answer.code == 200
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["content-security-policy"].startswith("sandbox; default-src 'none'")
        kind = answer.headers["content-type"]
        assert kind.startswith("video/mp4" if name == "video.mp4" else ("text/plain", "application/octet-stream"))
    part = stage.browser.get(f"files/{OUT}/video.mp4", range="bytes=10-19")
    assert (part.code, part.body) == (206, bytes(range(10, 20)))
    assert stage.browser.get(f"files/{OUT}/video.mp4", range="bytes=500-600").code == 416


@pytest.mark.parametrize(
    "path",
    [
        "id", "dispatch/secrets", f"{OUT}", f"{OUT}/../../../../id", f"{OUT}/../claim", "../../../../etc/passwd",
        "/etc/passwd",
        f"{OUT}/out-link", f"{OUT}/folder-link/id", f"{OUT}/secret-link", f"{OUT}/claim-link", f"{OUT}/pipe",
        f"{OUT}/no\0file", f"sessions/{SESSION}/attempt-1/claim", f"sessions/{SESSION}/attempt-1",
    ],
)  # fmt: skip
def test_other_files_and_links_that_lead_out_are_refused(stage: Stage, tmp_path: Path, path: str) -> None:
    folder = stage.mirror / OUT
    folder.mkdir(parents=True)
    (tmp_path / "outside").write_text("outside")
    (stage.mirror / "dispatch").mkdir()
    for name in ("id", "dispatch/secrets", f"sessions/{SESSION}/attempt-1/claim"):
        (stage.mirror / name).write_text("x")
    (folder / "out-link").symlink_to(tmp_path / "outside")
    (folder / "folder-link").symlink_to(stage.mirror)
    (folder / "secret-link").symlink_to(stage.mirror / "dispatch" / "secrets")
    (folder / "claim-link").symlink_to(stage.mirror / f"sessions/{SESSION}/attempt-1/claim")
    os.mkfifo(folder / "pipe")
    assert stage.browser.get(f"files/{path}").code == 404


def test_names_from_a_grid_are_text_in_every_page_and_no_script_stands_in_one(stage: Stage) -> None:
    for place in ("", "cell/stairs__script_alert_1___script_", "rollouts", "host"):
        answer = stage.browser.get(place)
        assert answer.code == 200
        assert HOSTILE not in answer.text
        policy = answer.headers["content-security-policy"]
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert " style=" not in answer.text
        assert answer.text.count("<script") == 1


@pytest.mark.parametrize("place", ["cell/nonsense", "cell", "nonsense", "files"])
def test_an_address_that_leads_nowhere_is_a_page_with_a_way_back(stage: Stage, place: str) -> None:
    found = stage.browser.get(place)
    assert found.code == 404
    assert f'<a href="{KEYS.base}">Back to the run</a>' in found.text
    assert "<nav" in found.text
    assert "<nav" not in stage.browser.get(place, x_part="1").text


def test_an_unknown_key_of_a_filter_that_nothing_fits_is_named(stage: Stage) -> None:
    assert "there is no key foo, but state, policy" in stage.browser.get("?q=foo:bar").text
    assert "there is no key" not in stage.browser.get("?q=policy:bar").text


def test_a_part_that_has_not_changed_is_not_sent_again(stage: Stage) -> None:
    first = stage.browser.get(x_part="1")
    assert "<html" not in first.text
    again = stage.browser.get(x_part="1", if_none_match=first.headers["etag"])
    assert (again.code, again.body) == (304, b"")
    assert json.loads(again.headers["x-said"])["link"] == ""


def test_ten_pages_cost_the_host_one_look(stage: Stage) -> None:
    before = stage.looks()
    for _ in range(10):
        assert stage.browser.get().code == 200
    assert stage.looks() - before <= 1, "the watcher may have looked meanwhile"


def test_a_lost_link_is_said_and_the_page_recovers(tmp_path: Path) -> None:
    later = an_answer(Seen(SESSION, counts=(31, 21)), now=NOW + 9)
    stage = staged(tmp_path, [RUNNING, HostError("no route to gpu-box"), later])
    try:
        stage.feed.refresh()
        stage.feed.watcher.wait(1, 10)
        said = json.loads(stage.browser.get(x_part="1").headers["x-said"])
        assert "no route to gpu-box" in said["link"]
        assert "30 of" in stage.browser.get().text, "the last status stays"
        stage.feed.refresh()
        stage.feed.watcher.wait(2, 10)
        answer = stage.browser.get()
        assert json.loads(answer.headers["x-said"])["link"] == ""
        assert "31 of" in answer.text
    finally:
        stage.server.close()


def test_a_whole_log_comes_from_the_host_where_this_machine_has_no_copy(stage: Stage) -> None:
    view, path = stage.feed.watcher.source.view, f"sessions/{SESSION}/attempt-1/log"
    file = Path(view.directory) / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"<script>\n" + bytes(range(256)) * 9000)
    answer = stage.browser.get(f"files/{path}")
    assert (answer.code, answer.body) == (200, file.read_bytes())
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert "sandbox" in answer.headers["content-security-policy"]
    for other in (
        f"sessions/{SESSION}/attempt-2/log",
        "sessions/nobody/attempt-1/log",
        f"sessions/{SESSION}/attempt-1/end",
    ):
        assert stage.browser.get(f"files/{other}").code == 404


def test_a_log_comes_in_parts_that_follow_each_other_whole(stage: Stage) -> None:
    log = stage.run / "sessions" / SESSION / "attempt-1" / "log"
    log.parent.mkdir(parents=True)
    text = "".join(f"line {number} é -e x\n" for number in range(9000)).encode()
    log.write_bytes(text + "é".encode()[:1])
    end = json.loads(stage.browser.get(f"log/{SESSION}/1").body)
    assert end["text"].startswith("line ")
    assert end["text"].endswith("8999 é -e x\n")
    assert end["end"] == len(text), "half a character waits for its other half"
    first = json.loads(stage.browser.get(f"log/{SESSION}/1?from=0").body)
    assert text.decode().startswith(first["text"])
    hits = json.loads(stage.browser.get(f"search/{SESSION}/1?q=-e%20X").body)
    assert hits[0] == {"number": 1, "text": "line 0 é -e x"}
    assert json.loads(stage.browser.get(f"search/{SESSION}/1?q=line.8").body) == [], "a word is no pattern"
    log.unlink()
    log.symlink_to("/etc/passwd")
    time.sleep(1.0)  # pages that ask at once share an answer
    assert json.loads(stage.browser.get(f"log/{SESSION}/1").body) is None
    assert stage.browser.get("log/other/1").code == 404


def test_a_key_is_kept_for_the_next_server_but_not_for_others_and_not_for_long(tmp_path: Path) -> None:
    made = new_access(8431)
    assert kept_access("run-1") is None
    keep_access("run-1", made)
    assert kept_access("run-1") == made
    place = tmp_path / "state" / "comborun" / "view" / "run-1.json"
    assert place.stat().st_mode & 0o777 == 0o600
    place.chmod(0o644)
    assert kept_access("run-1") is None
    place.chmod(0o600)
    os.utime(place, (time.time() - access.KEPT_S - 5,) * 2)
    assert kept_access("run-1") is None


def test_the_tunnel_is_for_the_way_the_user_came(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("getpass.getuser", lambda: "ann")
    assert tunnel_command("10.0.0.9 51000 10.0.0.5 22", 8420) == "ssh -N -L 8420:127.0.0.1:8420 ann@10.0.0.5"
    assert tunnel_command("10.0.0.9 51000 10.0.0.5 2222", 8421).endswith(" -p 2222 ann@10.0.0.5")
    assert tunnel_command("", 8420) == tunnel_command("UNKNOWN 65535 UNKNOWN 65535", 8420) == ""


def test_all_hosts_are_looked_at_while_a_page_shows_their_runs(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_UNUSED_S", 0.5)
    stage.browser.get()
    assert stage.fleet.closed == 0
    shown = shown_soon(stage, "3/8")
    assert HOSTILE not in shown
    assert (
        "combo view &lt;script&gt;alert(1)&lt;/script&gt;-20260729T101500Z-ab12 --host &#39;far &amp; away&#39;"
        in shown.replace("&#34;", "&#39;")
    )
    assert "asleep: &lt;script&gt;" in shown
    deadline = time.monotonic() + 20
    while not stage.fleet.closed and time.monotonic() < deadline:
        time.sleep(0.05)
    assert stage.fleet.closed == 1
    shown_soon(stage, "3/8")


def shown_soon(stage: Stage, text: str) -> str:
    deadline = time.monotonic() + 20
    while text not in (shown := stage.browser.get("hosts").text) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert text in shown
    return shown


def test_a_long_list_is_short_at_first_and_a_filter_finds_the_rest(tmp_path: Path) -> None:
    count = 70
    plan = a_plan([a_session(f"p{place:02}", "grass") for place in range(count)])
    feed = Feed(Source(Box([an_answer(Seen("grass_p69", counts=(3, 2)))]), a_view(plan)), Settings(60))
    feed.watcher.wait(0, 10)
    made = Server(feed, KEYS, Site(KEYS.base), lambda: cast("Fleet", OneRun()))
    browser = Browser(made.app())

    def rows(place: str) -> list[str]:
        return re.findall(r'<tr id="s-([^"]+)"', browser.get(place).text)

    assert (len(rows("")), rows("")[0], len(rows("?all=1"))) == (60, "grass_p69", count)
    assert rows("?q=policy:p68") == ["grass_p68"]
    assert "and 10 more" in browser.get("").text
    whole = browser.get("")
    found = re.search(r'data-tag="([^"]+)"', whole.text)
    assert found
    again = browser.get("", x_part="1", if_none_match=unescape(found[1]))
    assert (again.code, again.body) == (304, b""), "what the page came with is not sent again"
    made.close()
