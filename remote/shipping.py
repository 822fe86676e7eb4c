"""What `sync` ships: the user's own files on this machine, with CRLF turned to LF where they are text."""

from __future__ import annotations

import codecs
import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from comborun.errors import UserError
from comborun.grid import Shipped

CHUNK = 1 << 20


@dataclass(frozen=True)
class Content:
    size: int
    """bytes as shipped"""
    sha256: str
    converted: bool
    """whether CRLF becomes LF"""


def measure(path: Path) -> Content:
    """Read a file once, a chunk at a time. Raises OSError."""
    plain, lines = _Sum(), _Sum()
    decoder = codecs.getincrementaldecoder("utf-8")()
    text = True

    def seen(chunks: Iterable[bytes]) -> Iterator[bytes]:
        nonlocal text
        for chunk in chunks:
            plain.add(chunk)
            text = text and b"\0" not in chunk and _decodes(decoder, chunk)
            if text:
                yield chunk

    for chunk in to_lf(seen(read_chunks(path))):
        lines.add(chunk)
    converted = text and _decodes(decoder, b"", final=True) and lines.size != plain.size
    chosen = lines if converted else plain
    return Content(chosen.size, chosen.digest, converted)


def contents(path: Path, *, converted: bool) -> Iterator[bytes]:
    """The bytes that are shipped, a chunk at a time. Raises OSError."""
    chunks = read_chunks(path)
    return to_lf(chunks) if converted else chunks


def read_chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            yield chunk


def to_lf(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """CRLF as LF, wherever the chunks are cut; a CR that stands alone stays."""
    held = b""
    for chunk in chunks:
        whole = held + chunk
        held = b"\r" if whole.endswith(b"\r") else b""
        yield (whole[:-1] if held else whole).replace(b"\r\n", b"\n")
    if held:
        yield held


def _decodes(decoder: codecs.IncrementalDecoder, chunk: bytes, *, final: bool = False) -> bool:
    try:
        decoder.decode(chunk, final)
    except UnicodeDecodeError:
        return False
    return True


class _Sum:
    def __init__(self) -> None:
        self.size = 0
        self._hash = hashlib.sha256()

    def add(self, chunk: bytes) -> None:
        self.size += len(chunk)
        self._hash.update(chunk)

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()


ALWAYS_EXCLUDED = (".git", "__pycache__", ".venv", "node_modules", "*.pyc", ".comborun-sync-*")
_KEPT_MODE = 0o755
"""nobody else may write what was shipped"""


@dataclass(frozen=True)
class ShippedFile:
    path: str
    """below the shipment's folder on the host; undecodable bytes are surrogates"""
    source: Path
    mode: int
    content: Content

    @property
    def state(self) -> str:
        """What host/sync.py says of a path that holds this."""
        return f"f {self.mode:o} {self.content.sha256}"


@dataclass(frozen=True)
class ShippedLink:
    path: str
    target: str

    @property
    def state(self) -> str:
        return f"l {self.target}"


Item = ShippedFile | ShippedLink


@dataclass(frozen=True)
class Shipment:
    """One entry of `sync`, with everything that it ships."""

    entry: Shipped
    source: Path
    folder: str
    """on the host, as the user wrote it"""
    items: tuple[Item, ...]
    """sorted by path"""

    @property
    def home(self) -> Path:
        """The folder on this machine that it comes from."""
        return self.source if self.source.is_dir() else self.source.parent

    @property
    def files(self) -> tuple[ShippedFile, ...]:
        return tuple(item for item in self.items if isinstance(item, ShippedFile))

    @property
    def size(self) -> int:
        """Bytes as shipped."""
        return sum(file.content.size for file in self.files)

    @property
    def digest(self) -> str:
        """Of every path with its mode and content."""
        lines = (f"{item.path}\0{item.state}\0" for item in self.items)
        return hashlib.sha256("".join(lines).encode("utf-8", "surrogateescape")).hexdigest()


def digest_of(shipments: Iterable[Shipment]) -> str:
    """Of all that is shipped and where it goes; empty when nothing is."""
    lines = "".join(f"{shipment.folder}\0{shipment.digest}\0" for shipment in shipments)
    return hashlib.sha256(lines.encode("utf-8", "surrogateescape")).hexdigest() if lines else ""


def survey(entries: Iterable[Shipped], folder: Path) -> tuple[Shipment, ...]:
    """Read all that is to be shipped; relative places are relative to `folder`. Raises UserError."""
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


def _survey(entry: Shipped, folder: Path) -> Shipment:
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
        raise UserError(f"sync: {error.filename} can't be read: {error.strerror}", "exclude it, or mend it") from None
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
    """Whether a path below `from` stays here. A pattern without a slash is for names at any depth."""
    name = path.rpartition("/")[2]
    cleaned = (pattern.removeprefix("./").rstrip("/") for pattern in (*ALWAYS_EXCLUDED, *patterns))
    return any(fnmatchcase(path if "/" in pattern else name, pattern) for pattern in cleaned)


def _check_size(entry: Shipped, found: list[tuple[str, Path]]) -> None:
    sizes = {path: place.lstat().st_size for path, place in found}
    total = sum(sizes.values())
    if total > entry.max_size:
        largest = sorted(sizes, key=lambda path: (-sizes[path], path))[:3]
        named = ", ".join(f"{path} ({told(sizes[path])})" for path in largest)
        raise UserError(
            f"sync: {entry.source} holds {told(total)}, and max_size is {told(entry.max_size)}",
            f"exclude what is not needed there, or raise max_size; the largest: {named}",
        )


def _item(root: Path, path: str, place: Path) -> Item:
    status = place.lstat()
    if stat.S_ISREG(status.st_mode):
        return ShippedFile(path, place, status.st_mode & _KEPT_MODE, measure(place))
    if stat.S_ISLNK(status.st_mode):
        return ShippedLink(path, _target_inside(root, path, place))
    raise UserError(f"sync: {place} is neither a file nor a folder nor a link", "exclude it")


def _target_inside(root: Path, path: str, place: Path) -> str:
    """Where a link leads. Raises UserError unless that is inside: by its words, and by where they lead here."""
    target = os.readlink(place)  # noqa: PTH115 - a Path would lose a slash at the end
    words = os.path.normpath(f"{path}/../{target}")
    inside = not target.startswith("/") and words != ".." and not words.startswith("../")
    if not inside or not Path(os.path.realpath(place)).is_relative_to(root):
        raise UserError(
            f"sync: the link {place} leads to {target}, which is outside of what is shipped",
            "exclude it, or ship what it leads to with an entry of its own",
        )
    return target


def told(size: int) -> str:
    """Bytes for a person: `812 B`, `3.4 MB`."""
    value = float(size)
    for unit in ("B", "kB", "MB"):
        if value < 999.5:
            return f"{value:.3g} {unit}"
        value /= 1000
    return f"{value:.3g} GB"
