"""The files of `sync`: reads the user's files, compares them with the host's, and sends those that differ.

Two round trips in all. In files that are text (UTF-8 without a NUL) CRLF becomes LF.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from comborun.errors import HostError, UserError
from comborun.remote import program
from comborun.rules.facts import Fact
from comborun.rules.vocabulary import amount
from comborun.text import printable, several
from comborun.words import say

if TYPE_CHECKING:
    from comborun.grid.keys.launch import SyncKeys
    from comborun.remote.transport import Transport

_OF_DESKTOPS = (".DS_Store", "._*", ".idea", ".ipynb_checkpoints", "*.swp")
ALWAYS_EXCLUDED = (".git", "__pycache__", ".venv", "node_modules", "*.pyc", ".comborun-sync-*", *_OF_DESKTOPS)
"""not what programs read, and some of it changes whenever somebody looks at a folder"""
_KEPT_MODE = 0o755
"""only the owner may write shipped files"""
_SLOWEST = 50_000
"""bytes per second; a slower link counts as cut"""
_NAMED = 5


@dataclass(frozen=True)
class ShippedFile:
    path: str
    """below the shipment's folder on the host; undecodable bytes are surrogates"""
    source: Path
    mode: int
    size: int
    """bytes as shipped"""
    sha256: str
    converted: bool
    """whether CRLF becomes LF"""

    @property
    def state(self) -> str:
        """The state as host/verbs/sync.py reports it for this content."""
        return f"f {self.mode:o} {self.sha256}"

    @property
    def order(self) -> dict[str, object]:
        return {"path": self.path, "mode": self.mode, "size": self.size, "sha256": self.sha256}


@dataclass(frozen=True)
class ShippedLink:
    path: str
    target: str

    @property
    def state(self) -> str:
        return f"l {self.target}"

    @property
    def order(self) -> dict[str, object]:
        return {"path": self.path, "target": self.target}


Item = ShippedFile | ShippedLink


def size_of(items: Iterable[Item]) -> int:
    """Bytes as shipped."""
    return sum(item.size for item in items if isinstance(item, ShippedFile))


@dataclass(frozen=True)
class Shipment:
    entry: SyncKeys
    source: Path
    folder: str
    """on the host, as the user wrote it"""
    items: tuple[Item, ...]
    """sorted by path"""

    @property
    def home(self) -> Path:
        """Its folder on this machine."""
        return self.source if self.source.is_dir() else self.source.parent

    @property
    def size(self) -> int:
        return size_of(self.items)

    @property
    def digest(self) -> str:
        return _digest(text for item in self.items for text in (item.path, item.state))


def _digest(texts: Iterable[str]) -> str:
    return hashlib.sha256("".join(f"{text}\0" for text in texts).encode("utf-8", "surrogateescape")).hexdigest()


def digest_of(shipments: Sequence[Shipment]) -> str:
    """The digest of everything that is shipped, and of its places; empty without shipments."""
    return _digest(text for one in shipments for text in (one.folder, one.digest)) if shipments else ""


def survey(entries: Iterable[SyncKeys], folder: Path) -> tuple[Shipment, ...]:
    """Read everything to ship; relative places are relative to `folder`. Raises UserError."""
    shipments = tuple(_survey(entry, folder) for entry in entries)
    seen: dict[str, tuple[Shipment, str]] = {}
    for shipment in shipments:
        for item in shipment.items:
            target = f"{shipment.folder.rstrip('/')}/{item.path}"
            first, state = seen.setdefault(target, (shipment, item.state))
            if state != item.state:
                both = f"{first.entry.source} and {shipment.entry.source}"
                raise UserError(f"sync: {both} both ship {target}, and differ", "exclude it from one of the two")
    return shipments


def _survey(entry: SyncKeys, folder: Path) -> Shipment:
    source = (folder / Path(entry.source).expanduser()).resolve()
    try:
        if source.is_dir():
            found, target = sorted(_walk(source, "", entry.exclude)), entry.to
        elif source.is_file():
            place, _, name = (entry.to if entry.to != "~" else "~/").rpartition("/")
            found, target = [(name or source.name, source)], place or "/"
        else:
            raise UserError(f"sync: there is no {entry.source} ({source})", "relative places begin at the grid file")
        _check_size(entry, found)
        items = tuple(_item(source, path, place) for path, place in found)
    except OSError as error:
        raise UserError(f"sync: {error.filename} can't be read: {error.strerror}", "exclude it, or fix it") from None
    return Shipment(entry, source, target, items)


def _walk(folder: Path, below: str, patterns: tuple[str, ...]) -> Iterator[tuple[str, Path]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            path = below + entry.name
            if excluded(path, patterns):
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from _walk(Path(entry.path), f"{path}/", patterns)
            else:
                yield path, Path(entry.path)


def excluded(path: str, patterns: Iterable[str]) -> bool:
    """Whether a path below `from` is left out. A pattern without a slash matches names at any depth."""
    name = path.rpartition("/")[2]
    cleaned = (pattern.removeprefix("./").rstrip("/") for pattern in (*ALWAYS_EXCLUDED, *patterns))
    return any(fnmatchcase(path if "/" in pattern else name, pattern) for pattern in cleaned)


def _check_size(entry: SyncKeys, found: list[tuple[str, Path]]) -> None:
    sizes = {path: place.lstat().st_size for path, place in found}
    total = sum(sizes.values())
    if total > entry.max_size:
        largest = sorted(sizes, key=lambda path: (-sizes[path], path))[:3]
        named = ", ".join(f"{path} ({amount(sizes[path])})" for path in largest)
        raise UserError(
            f"sync: {entry.source} holds {amount(total)}, and max_size is {amount(entry.max_size)}",
            f"exclude what is not needed there, or raise max_size; the largest: {named}",
        )


def _item(root: Path, path: str, place: Path) -> Item:
    status = place.lstat()
    if stat.S_ISLNK(status.st_mode):
        return ShippedLink(path, _target_inside(root, path, place))
    if not stat.S_ISREG(status.st_mode):
        raise UserError(f"sync: {place} is neither a file nor a folder nor a link", "exclude it")
    data, converted = _content(place)
    return ShippedFile(path, place, status.st_mode & _KEPT_MODE, len(data), hashlib.sha256(data).hexdigest(), converted)


def _content(place: Path) -> tuple[bytes, bool]:
    """The content to ship, and whether its CRLF became LF. Raises OSError."""
    data = place.read_bytes()
    if b"\r\n" in data and b"\0" not in data:
        try:
            data.decode()
        except UnicodeDecodeError:
            return data, False
        return data.replace(b"\r\n", b"\n"), True
    return data, False


def _target_inside(root: Path, path: str, place: Path) -> str:
    """The target of a link. Raises UserError unless it is inside, by its text and by where it leads here."""
    target = os.readlink(place)  # noqa: PTH115 - a Path would lose a slash at the end
    words = os.path.normpath(f"{path}/../{target}")
    inside = not target.startswith("/") and words != ".." and not words.startswith("../")
    if not inside or not Path(os.path.realpath(place)).is_relative_to(root):
        raise UserError(
            f"sync: the link {place} leads to {target}, which is outside of what is shipped",
            "exclude it, or ship what it leads to with an entry of its own",
        )
    return target


class Delivery(NamedTuple):
    """The part of a shipment that the host lacks."""

    shipment: Shipment
    missing: tuple[Item, ...]
    in_place: bool = False
    """whether the host is this machine and the files are already in place"""


def compare_files(
    transport: Transport, shipments: Sequence[Shipment], python: program.Python = program.ANY
) -> tuple[Delivery, ...]:
    """Ask the host which files it has. One round trip, none without shipments; changes nothing.

    Raises UserError if something on the host is in the way.
    """
    apart = [shipment for shipment in shipments if shipment.items and not _in_place(transport.host, shipment)]
    states = iter(_ask(transport, apart, python) if apart else ())
    return tuple(
        Delivery(shipment, _missing(shipment, [next(states) for _ in shipment.items]))
        if shipment in apart
        else Delivery(shipment, (), in_place=bool(shipment.items))
        for shipment in shipments
    )


def _in_place(host: str, shipment: Shipment) -> bool:
    """Whether source and target are the same. Raises UserError if the target lies within the source."""
    if host != "local":
        return False
    target = Path(shipment.entry.to).expanduser().resolve()
    if not shipment.source.is_dir():
        return Path(shipment.folder).expanduser().resolve() / shipment.items[0].path == shipment.source
    if target != shipment.source and target.is_relative_to(shipment.source):
        raise UserError(
            f"sync: {shipment.entry.to} lies within {shipment.entry.source}, and would be shipped into itself",
            "choose a place outside",
        )
    return target == shipment.source


def _ask(transport: Transport, shipments: Sequence[Shipment], python: program.Python) -> list[str | Fact]:
    """The state of every path, in order."""
    question = [(shipment.folder, [item.path for item in shipment.items]) for shipment in shipments]
    stdin = json.dumps(question).encode()
    done = program.run_packed(transport, "sync", "look", stdin=stdin, timeout=300, python=python)
    states = [] if done.code else program.answer(transport, done)
    if len(states) != sum(len(paths) for _, paths in question):
        raise HostError(f"{transport.host} could not be asked what it has of `sync`", done.complaint)
    return [Fact.of(state) or str(state) for state in states]


def _missing(shipment: Shipment, states: Sequence[str | Fact]) -> tuple[Item, ...]:
    """The items that differ on the host. Raises UserError if one can't be put there."""
    if blocked := list(dict.fromkeys(say(state) for state in states if isinstance(state, Fact))):
        more = f", and {len(blocked) - _NAMED} more" if len(blocked) > _NAMED else ""
        raise UserError(
            f"sync: {shipment.entry.source} can't go to {shipment.folder}: {'; '.join(blocked[:_NAMED])}{more}",
            "nothing is deleted on the host: move it away there, or exclude what goes there",
        )
    return tuple(item for item, state in zip(shipment.items, states, strict=True) if item.state != state)


def deliver(
    transport: Transport, deliveries: Iterable[Delivery], root: str, python: program.Python = program.ANY
) -> None:
    """Send the missing files, all or none. One round trip, none if nothing is missing."""
    missing = [delivery for delivery in deliveries if delivery.missing]
    if not missing:
        return
    data = stream(missing)
    timeout = 120 + len(data) / _SLOWEST
    done = program.run_packed(transport, "sync", "receive", root, stdin=data, timeout=timeout, python=python)
    if done.code:
        raise HostError(f"the files of `sync` could not be put on {transport.host}", done.complaint)


def stream(deliveries: Sequence[Delivery]) -> bytes:
    """A line that lists all files, then their bytes. Raises UserError if a file has changed meanwhile."""
    items = [(one.shipment.folder, item) for one in deliveries for item in one.missing]
    head = json.dumps([{"folder": folder, **item.order} for folder, item in items]).encode()
    return b"".join([head, b"\n", *(_read(item) for _, item in items if isinstance(item, ShippedFile))])


def _read(file: ShippedFile) -> bytes:
    try:
        data, _ = _content(file.source)
    except OSError as error:
        raise UserError(f"sync: {file.source} can't be read: {error.strerror}", "the same command again") from None
    if hashlib.sha256(data).hexdigest() != file.sha256:
        raise UserError(
            f"sync: {file.source} changes while it is shipped", "the same command again, when it is written"
        )
    return data


def shipped_lines(deliveries: Iterable[Delivery]) -> Iterator[str]:
    """A sentence about each entry of `sync`."""
    for shipment, missing, in_place in deliveries:
        many = several(len(shipment.items), "file")
        sent = f"{len(missing)} sent, {amount(size_of(missing))}" if missing else "nothing had changed"
        if in_place:
            sent = "they are there already"
        yield f"{shipment.entry.source} -> {shipment.entry.to}: {many}, {sent}"
        files = () if in_place else (item for item in shipment.items if isinstance(item, ShippedFile))
        if converted := [printable(file.path) for file in files if file.converted]:
            more = f" and {len(converted) - _NAMED} more" if len(converted) > _NAMED else ""
            yield f"CRLF became LF in {', '.join(converted[:_NAMED])}{more}"
