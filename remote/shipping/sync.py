"""Put the user's own files on a host: ask what it has, send what differs, all in two round trips."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from comborun.amounts import several
from comborun.attempt import parse_record
from comborun.errors import HostError, UserError
from comborun.library import library_files
from remote.shipping.content import contents
from remote.shipping.survey import Item, Shipment, ShippedFile, told

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from comborun.transport import Transport

_SLOWEST = 50_000
"""bytes per second; a link that is slower than this counts as cut"""
_NAMED = 5


@dataclass(frozen=True)
class Delivery:
    """What of a shipment its host lacks."""

    shipment: Shipment
    missing: tuple[Item, ...]
    in_place: bool = False
    """the host is this machine, and the files are where they should go"""


def compare(transport: Transport, shipments: Sequence[Shipment]) -> tuple[Delivery, ...]:
    """Ask the host what it has of the shipments. One round trip, none without shipments; changes nothing.

    Raises UserError when something on the host is in the way.
    """
    apart = [shipment for shipment in shipments if shipment.items and not _in_place(transport.host, shipment)]
    states = iter(_ask(transport, apart) if apart else ())
    return tuple(
        Delivery(shipment, missing_of(shipment, [next(states) for _ in shipment.items]))
        if shipment in apart
        else Delivery(shipment, (), in_place=bool(shipment.items))
        for shipment in shipments
    )


def missing_of(shipment: Shipment, states: Sequence[str]) -> tuple[Item, ...]:
    """The items whose path on the host is in another state. Raises UserError when one can't be put there."""
    blocked = list(dict.fromkeys(state[2:] for state in states if state.startswith("x ")))
    if blocked:
        more = f", and {len(blocked) - _NAMED} more" if len(blocked) > _NAMED else ""
        raise UserError(
            f"sync: {shipment.entry.source} can't go to {shipment.folder}: {'; '.join(blocked[:_NAMED])}{more}",
            "nothing is deleted on the host: move it away there, or exclude what goes there",
        )
    return tuple(item for item, state in zip(shipment.items, states, strict=True) if item.state != state)


def deliver(transport: Transport, deliveries: Iterable[Delivery], root: str) -> None:
    """Send what is missing, all of it or nothing. One round trip, none when nothing is missing."""
    missing = [delivery for delivery in deliveries if delivery.missing]
    if not missing:
        return
    data = stream(missing)
    script = f'{library_files()["sync.sh"]}\nsync::receive "$1"\n'
    done = transport.run(script, root, stdin=data, timeout=120 + len(data) / _SLOWEST)
    if done.code or "placed" not in parse_record(done.text):
        raise HostError(f"the files of `sync` could not be put on {transport.host}", _complaint(done.complaint))


def stream(deliveries: Iterable[Delivery]) -> bytes:
    """What sync::receive reads. Raises UserError when a file has changed since it was looked at."""
    into = BytesIO()  # its bytes are handed out without a copy
    for delivery in deliveries:
        into.write(_words(f"folder {delivery.shipment.folder}"))
        for item in delivery.missing:
            if isinstance(item, ShippedFile):
                into.write(_words(f"file {item.mode:03o} {item.content.size} {item.content.sha256}", item.path))
                _pour(item, into)
            else:
                into.write(_words("link", item.path, item.target))
    into.write(_words("over"))
    return into.getvalue()


def lines(deliveries: Iterable[Delivery]) -> Iterator[str]:
    """What was shipped, a sentence for each entry of `sync`."""
    for delivery in deliveries:
        shipment = delivery.shipment
        many = several(len(shipment.items), "file")
        size = sum(item.content.size for item in delivery.missing if isinstance(item, ShippedFile))
        sent = f"{len(delivery.missing)} sent, {told(size)}" if delivery.missing else "nothing had changed"
        if delivery.in_place:
            sent = "they are there already"
        yield f"{shipment.entry.source} -> {shipment.entry.to}: {many}, {sent}"
        if converted := [file.path for file in shipment.files if file.content.converted and not delivery.in_place]:
            more = f" and {len(converted) - _NAMED} more" if len(converted) > _NAMED else ""
            yield f"CRLF became LF in {', '.join(map(_printable, converted[:_NAMED]))}{more}"


def _in_place(host: str, shipment: Shipment) -> bool:
    """Whether source and target are one. Raises UserError when the target lies within the source."""
    if host != "local":
        return False
    target = Path(shipment.entry.to).expanduser().resolve()
    if shipment.source.is_dir() and target != shipment.source and target.is_relative_to(shipment.source):
        raise UserError(
            f"sync: {shipment.entry.to} lies within {shipment.entry.source}, and would be shipped into itself",
            "choose a place outside",
        )
    if shipment.source.is_dir():
        return target == shipment.source
    return Path(shipment.folder).expanduser().resolve() / shipment.items[0].path == shipment.source


def _ask(transport: Transport, shipments: Sequence[Shipment]) -> list[str]:
    """The state of every path, in order."""
    request = b"".join(
        _words(shipment.folder, str(len(shipment.items)), *(item.path for item in shipment.items))
        for shipment in shipments
    )
    script = f"{library_files()['sync.sh']}\nsync::look\n"
    done = transport.run(script, stdin=request, timeout=300)
    words = done.stdout.decode("utf-8", "surrogateescape").split("\0")
    states = words[1:-2]
    if done.code or words[-2:] != ["over", ""] or len(states) != sum(len(shipment.items) for shipment in shipments):
        raise HostError(f"{transport.host} could not be asked what it has of `sync`", _complaint(done.complaint))
    return states


def _words(*words: str) -> bytes:
    return b"".join(word.encode("utf-8", "surrogateescape") + b"\0" for word in words)


def _pour(file: ShippedFile, into: BytesIO) -> None:
    digest = hashlib.sha256()
    try:
        for chunk in contents(file.source, converted=file.content.converted):
            digest.update(chunk)
            into.write(chunk)
    except OSError as error:
        raise UserError(f"sync: {file.source} can't be read: {error.strerror}", "the same command again") from None
    if digest.hexdigest() != file.content.sha256:
        raise UserError(
            f"sync: {file.source} changes while it is shipped", "the same command again, when it is written"
        )


def _printable(path: str) -> str:
    return path if path.isprintable() else ascii(path)


def _complaint(text: str) -> str:
    return text.removeprefix("sync: ")
