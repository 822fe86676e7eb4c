"""What the page gives of a run's files: logs in parts, what a search finds in them, records and videos.

A log stays on its host: a short script there gives a part of it, or the lines that hold a word. A video is copied from
the host on a click.
"""

from __future__ import annotations

import codecs
import mimetypes
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path, PurePosixPath
from threading import Lock, Thread
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from comborun.errors import HostError, UserError
from comborun.monitor.view.access import FILE_POLICY
from comborun.monitor.view.records import is_inside
from comborun.remote.fetch import FetchOptions, fetch
from comborun.remote.logs import log_part
from comborun.rules.names import RUN, RunLayout, attempt_number
from comborun.text import harmless

if TYPE_CHECKING:
    from starlette.requests import Request

    from comborun.monitor.view.feed import Feed
    from comborun.monitor.watch import Source

T = TypeVar("T")
PART = 64 << 10
"""bytes of one part"""
_BLOCK = 1 << 20
"""bytes of one part of a whole log"""
_SHARED_S = 0.9
"""seconds for which pages that ask the same share an answer"""
_KEPT = 64
"""answers that are kept"""
_FOUND_MOST = 200
"""lines that a search finds at most"""
_LINE_MOST = 400
"""characters of each"""
_SEARCH = """
[[ -f $1 && ! -L $1 ]] || exit 4
LC_ALL=C.UTF-8 grep -a -n -i -F -m "$3" -e "$2" -- "$1" | cut -b -2000
"""
_OF_FILE = {"content-security-policy": FILE_POLICY, "cache-control": "private, no-cache"}
"""headers"""
_BODY_MOST = 4096
_FETCH_BYTES = 1 << 20
_PLAYED = {".mp4": "video/mp4", ".webm": "video/webm", ".gif": "image/gif"}


class Part(NamedTuple):
    start: int
    end: int
    """offsets of its bytes"""
    size: int
    """of the whole log"""
    text: str


class Line(NamedTuple):
    number: int
    text: str


class Logs:
    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: dict[tuple[object, ...], tuple[float, object]] = {}

    def part(self, source: Source, name: str, attempt: int, start: int, most: int) -> Part | None:
        """A part from offset `start` on; -1: the last one. None if there is no log. Raises HostError."""

        def read() -> Part | None:
            found = log_part(source.transport, source.view.directory, name, attempt, start, most)
            if not found:
                return None
            begun, size, data = found
            if start < 0 and begun and b"\n" in data:  # begin with a whole line
                cut = data.index(b"\n") + 1
                begun, data = begun + cut, data[cut:]
            decoder = codecs.getincrementaldecoder("utf-8")("replace")
            text = decoder.decode(data)
            held = len(decoder.getstate()[0])  # bytes of a last character that is not all there yet
            return Part(begun, begun + len(data) - held, size, harmless(text, keep="\n\r\t"))

        return self._shared((name, attempt, start, most), read)

    @staticmethod
    def whole(source: Source, name: str, attempt: int) -> Iterator[bytes]:
        """The whole log as it is now, as bytes; nothing if there is none. Raises HostError."""
        start = 0
        while part := log_part(source.transport, source.view.directory, name, attempt, start, _BLOCK):
            yield part.data
            start += len(part.data)
            if not part.data or start >= part.size:
                return

    def search(self, source: Source, name: str, attempt: int, word: str) -> list[Line]:
        """The first lines that hold a word, in any case. Raises HostError."""

        def find() -> list[Line]:
            path = RunLayout(source.view.directory).attempt(name, attempt).log
            done = source.transport.run(_SEARCH, path, word, str(_FOUND_MOST), timeout=20.0)
            if done.code not in (0, 1, 4):
                raise HostError(f"the log of {name} can't be searched", done.complaint)
            rows = (line.partition(":") for line in done.text.split("\n"))
            numbered = ((number, text) for number, _, text in rows if number.isdecimal())
            return [Line(int(number), harmless(text, keep="\t")[:_LINE_MOST]) for number, text in numbered]

        return self._shared((name, attempt, "search", word), find)

    def _shared(self, key: tuple[object, ...], read: Callable[[], T]) -> T:
        with self._lock:  # pages that ask the same meanwhile wait for the answer
            at, kept = self._kept.get(key, (-1e9, None))
            if monotonic() - at < _SHARED_S:
                return cast(T, kept)
            found = read()
            self._kept[key] = monotonic(), found
            while len(self._kept) > _KEPT:
                del self._kept[next(iter(self._kept))]
            return found


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
        start, most = (request.query_params.get(key, "") for key in ("from", "most"))
        begin, length = int(start) if start.isdecimal() else -1, int(most) if most.isdecimal() else PART
        try:
            part = self._logs.part(source, name, attempt, begin, min(length, PART))
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
        saved = {"content-disposition": "attachment"} if shown == "application/octet-stream" else {}
        return FileResponse(found, media_type=shown, headers={**_OF_FILE, **saved})

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
        return StreamingResponse(chain([first], sent), media_type="text/plain; charset=utf-8", headers=_OF_FILE)

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
