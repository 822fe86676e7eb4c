"""Who may use the page: the key, the cookie, and what every answer says to the browser.

Others have accounts on machines with GPUs, and each of them can open a connection to 127.0.0.1. So every read needs the
key of the page. The key is in the fragment of the printed address, which browsers send to nobody. A script exchanges it
for a cookie. Cookies of 127.0.0.1 go to all of its ports, so the cookie is limited to a folder with a random name: the
server of another user gets it only if it knows that name.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from hmac import compare_digest
from pathlib import Path
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse

HOST = "127.0.0.1"
STATIC = "/static/"
COOKIE = "combo-view"
KEPT_S = 24 * 3600.0
"""for so long after its last use a key opens the next server of the same run: pages that stayed open go on"""
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; media-src 'self'; connect-src 'self';"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
FILE_POLICY = "sandbox; default-src 'none'; style-src 'unsafe-inline'; media-src 'self'"
"""for files of the run: whatever they hold, nothing of it runs or loads anything"""
REPORT_POLICY = (
    "sandbox allow-scripts; default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'unsafe-inline'"
)
"""for the report, whose own policy allows one script by its hash"""
_ALWAYS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "x-frame-options": "DENY",
}

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


@dataclass(frozen=True)
class Access:
    key: str
    folder: str
    """the first part of every path but those of the program's own files"""
    port: int

    @property
    def base(self) -> str:
        return f"/{self.folder}/"

    @property
    def hosts(self) -> tuple[str, ...]:
        """The only values of `Host`: a page of another site may resolve its own name to 127.0.0.1."""
        return tuple(f"{name}:{self.port}" for name in (HOST, "localhost"))

    @property
    def address(self) -> str:
        return f"http://{HOST}:{self.port}{self.base}#{self.key}"

    @property
    def cookie(self) -> str:
        return f"{COOKIE}={self.key}; Path={self.base}; HttpOnly; SameSite=Strict; Max-Age=604800"

    def opens(self, word: str) -> bool:
        return compare_digest(word.encode("utf-8", "replace"), self.key.encode())


def new_access(port: int) -> Access:
    return Access(secrets.token_urlsafe(24), secrets.token_hex(4), port)


def kept_access(run: str) -> Access | None:
    """The key and the port of the last page about this run, unless they are too old or others may read them."""
    with suppress(OSError, ValueError, TypeError):
        place = _place(run)
        found = place.stat()
        private = found.st_uid == os.getuid() and not found.st_mode & 0o077
        if private and 0 <= time.time() - found.st_mtime < KEPT_S:
            return Access(**json.loads(place.read_text("utf-8")))
    return None


def keep_access(run: str, access: Access) -> None:
    """Keep it for the next server. A full disk is not an error."""
    with suppress(OSError):
        place = _place(run)
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = place.with_name(f".{place.name}-{os.getpid()}")
        draft.unlink(missing_ok=True)
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
            json.dump(asdict(access), stream)
        draft.replace(place)


def _place(run: str) -> Path:
    base = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(base).expanduser() / "comborun" / "view" / f"{run}.json"


class Guard:
    """Passes requests with the cookie on to `app`; `sign_in` answers all others, with a page that asks for the key."""

    def __init__(self, app: App, access: Access, sign_in: App) -> None:
        self._app = app
        self._access = access
        self._sign_in = sign_in

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def answer(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in {**_ALWAYS, "content-security-policy": PAGE_POLICY}.items():
                    headers.setdefault(name, value)
                headers.setdefault("cache-control", "no-store")
            await send(message)

        await self._chosen(scope)(scope, receive, answer)

    def _chosen(self, scope: Scope) -> App:
        headers, path, posts = Headers(scope=scope), str(scope["path"]), scope["method"] == "POST"
        hosts, host = headers.getlist("host"), headers.get("host", "")
        if len(hosts) != 1 or host not in self._access.hosts:
            words = f"this page answers only as {' or '.join(self._access.hosts)}: forward the same port, or see --port"
            return PlainTextResponse(words, 421)
        if scope["method"] not in {"GET", "HEAD", "POST"}:
            return PlainTextResponse("not possible", 405)
        if posts and headers.getlist("origin") != [f"http://{host}"]:
            return PlainTextResponse("an order comes from the page itself", 403)
        if path.startswith(STATIC) and not posts:
            return self._app
        if path == f"{self._access.base}key" and posts:
            return self._sign_in
        if not path.startswith(self._access.base):
            return PlainTextResponse("open the address that combo view printed", 404)
        keys = [cookie_parser(cookie).get(COOKIE, "") for cookie in headers.getlist("cookie")]
        return self._app if any(map(self._access.opens, keys)) else self._sign_in
