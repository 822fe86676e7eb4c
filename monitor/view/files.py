"""What the page gives of a run's files: logs, records and videos, and one file copied from the host on a click."""

from __future__ import annotations

import mimetypes
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path, PurePosixPath
from threading import Thread
from typing import TYPE_CHECKING

from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from comborun.errors import UserError
from comborun.monitor.view.access import FILE_POLICY
from comborun.monitor.view.logs import Logs
from comborun.monitor.view.records import is_inside
from comborun.remote.fetch import FetchOptions, fetch
from comborun.rules.names import RUN, attempt_number
from comborun.text import harmless

if TYPE_CHECKING:
    from starlette.requests import Request

    from comborun.monitor.view.feed import Feed
    from comborun.monitor.watch import Source

_BODY_MOST = 4096
_FETCH_BYTES = 1 << 20
_PLAYED = {".mp4": "video/mp4", ".webm": "video/webm", ".gif": "image/gif"}


@dataclass
class Transfer:
    """A file on its way to this machine."""

    done: int = 0
    total: int = 0
    complaint: str = ""
    over: bool = False


class Files:
    def __init__(self, feed: Feed, records: Callable[[], object], videos: Callable[[], Collection[str]]) -> None:
        """`records` copies what is new of the records; `videos` are the paths that may be copied."""
        self._feed = feed
        self._records = records
        self._videos = videos
        self._logs = Logs()
        self._transfers: dict[str, Transfer] = {}

    @property
    def asked(self) -> int:
        """How many files were asked for."""
        return len(self._transfers)

    def routes(self) -> list[Route]:
        return [
            Route("/log/{name}/{attempt:int}", self._log),
            Route("/search/{name}/{attempt:int}", self._search),
            Route("/files/{path:path}", self._file),
            Route("/fetched/{path:path}", self._fetched),
            Route("/fetch", self._fetch, methods=["POST"]),
        ]

    def _log(self, request: Request) -> Response:
        source, name, attempt = self._addressed(request)
        if source is None:
            return PlainTextResponse("there is no such session", 404)
        start = request.query_params.get("from", "-1")
        try:
            part = self._logs.part(source, name, attempt, int(start) if start.isdecimal() else -1)
        except UserError as error:
            return JSONResponse({"complaint": harmless(error.headline)}, 503)
        return JSONResponse(None if part is None else part._asdict())

    def _search(self, request: Request) -> Response:
        source, name, attempt = self._addressed(request)
        word = request.query_params.get("q", "")[:200]
        if source is None or not word or "\0" in word or "\n" in word:
            return PlainTextResponse("there is no such session", 404)
        try:
            return JSONResponse([one._asdict() for one in self._logs.search(source, name, attempt, word)])
        except UserError as error:
            return JSONResponse({"complaint": harmless(error.headline)}, 503)

    def _addressed(self, request: Request) -> tuple[Source | None, str, int]:
        watched, name = self._feed.watcher.source, request.path_params["name"]
        attempt = request.path_params["attempt"]
        known = name in watched.view.sessions and 0 < attempt < 10**9
        return watched.at(name) if known else None, name, attempt

    def here(self, path: str) -> bool:
        return self._resolved(path) is not None

    def _resolved(self, path: str) -> Path | None:
        """A regular file of an attempt, inside the run; None for everything else, also for a link that leads out."""
        if not is_inside(path) or "\0" in path:
            return None
        with suppress(OSError, RuntimeError):
            source = self._feed.watcher.source
            found = (source.folder / path).resolve(strict=True)
            for folder in (one.folder.resolve() for one in source.by_host().values()):
                inside = found.is_relative_to(folder / "sessions") and is_inside(str(found.relative_to(folder)))
                if inside and found.is_file():
                    return found
        return None

    def _file(self, request: Request) -> Response:
        found = self._resolved(request.path_params["path"])
        if found is None:
            return self._log_there(request.path_params["path"])
        kind = _PLAYED.get(found.suffix.lower())
        guessed = mimetypes.guess_type(found.name)[0] or "text/plain"
        shown = kind or ("text/plain; charset=utf-8" if _is_text(found, guessed) else "application/octet-stream")
        headers = {"content-security-policy": FILE_POLICY, "cache-control": "private, no-cache"}
        if shown == "application/octet-stream":
            headers["content-disposition"] = "attachment"
        return FileResponse(found, media_type=shown, headers=headers)

    def _log_there(self, path: str) -> Response:
        """A log that only the host has; logs are not copied while a run goes on."""
        parts = PurePosixPath(path).parts
        name, attempt = parts[1:3] if len(parts) == 4 else ("", "")
        source, number = self._feed.watcher.source, attempt_number(attempt)
        if name not in source.view.sessions or path != RUN.attempt(name, number).log:
            return PlainTextResponse("there is no such file here", 404)
        try:
            sent = self._logs.whole(source.at(name), name, number)
            first = next(sent, None)
        except UserError as error:
            return PlainTextResponse(harmless(error.headline), 503)
        if first is None:
            return PlainTextResponse("there is no such log", 404)
        headers = {"content-security-policy": FILE_POLICY, "cache-control": "private, no-cache"}
        return StreamingResponse(chain([first], sent), media_type="text/plain; charset=utf-8", headers=headers)

    async def _fetch(self, request: Request) -> Response:
        """Copy one file of an attempt to this machine."""
        path = (await body_of(request)).decode("utf-8", "replace")
        if path not in self._videos():
            return PlainTextResponse("there is no such video", 404)
        transfer = self._transfers.get(path)
        if transfer is None or transfer.over:
            self._transfers[path] = transfer = Transfer()
            Thread(target=self._bring, args=(path, transfer), daemon=True).start()
        return JSONResponse({}, 202)

    def _bring(self, path: str, transfer: Transfer) -> None:
        def received(which: PurePosixPath, done: int, total: int) -> None:
            if str(which) == path:
                transfer.done, transfer.total = done, total

        source = self._feed.watcher.source.at(PurePosixPath(path).parts[1])
        options = FetchOptions(limit=_FETCH_BYTES, others=(PurePosixPath(path),), received=received)
        try:
            fetch(source.transport, source.view.directory, source.folder, options)
            self._records()
            transfer.complaint = "" if self.here(path) else "the host has this file no more"
        except (UserError, OSError) as error:
            transfer.complaint = harmless(str(error))
        transfer.over = True

    def _fetched(self, request: Request) -> Response:
        path = request.path_params["path"]
        one = self._transfers.get(path) or Transfer()
        here = self.here(path)
        return JSONResponse({"done": one.done, "total": one.total, "complaint": one.complaint, "here": here})


async def body_of(request: Request) -> bytes:
    """The body; empty if it is longer than any that a page sends."""
    found = b""
    async for chunk in request.stream():
        found += chunk
        if len(found) > _BODY_MOST:
            return b""
    return found


def _is_text(path: Path, guessed: str) -> bool:
    with path.open("rb") as stream:
        return b"\0" not in stream.read(4096) and not guessed.startswith(("image/", "video/", "audio/"))
