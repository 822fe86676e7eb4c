"""Put the user's own files on a host: ask what it has, send what differs, all in two round trips."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from comborun.errors import HostError, UserError
from comborun.remote import program
from comborun.remote.shipping import Item, Shipment, ShippedFile, contents, told
from comborun.text import several

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from comborun.remote.transport import Transport


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


def compare(
    transport: Transport, shipments: Sequence[Shipment], python: program.Python = program.ANY
) -> tuple[Delivery, ...]:
    """Ask the host what it has of the shipments. One round trip, none without shipments; changes nothing.

    Raises UserError when something on the host is in the way.
    """
    apart = [shipment for shipment in shipments if shipment.items and not _in_place(transport.host, shipment)]
    states = iter(_ask(transport, apart, python) if apart else ())
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


def deliver(
    transport: Transport, deliveries: Iterable[Delivery], root: str, python: program.Python = program.ANY
) -> None:
    """Send what is missing, all of it or nothing. One round trip, none when nothing is missing."""
    missing = [delivery for delivery in deliveries if delivery.missing]
    if not missing:
        return
    data = stream(missing)
    timeout = 120 + len(data) / _SLOWEST
    done = program.run_packed(transport, "sync", "receive", root, stdin=data, timeout=timeout, python=python)
    if done.code:
        raise HostError(f"the files of `sync` could not be put on {transport.host}", done.complaint)


def stream(deliveries: Iterable[Delivery]) -> bytes:
    """What host/sync.py receives: a line that lists it, then the bytes of all files.

    Raises UserError when a file has changed since it was looked at.
    """
    deliveries = tuple(deliveries)
    into = BytesIO()  # its bytes are handed out without a copy
    into.write(json.dumps([_entry(one.shipment.folder, item) for one in deliveries for item in one.missing]).encode())
    into.write(b"\n")
    for delivery in deliveries:
        for item in delivery.missing:
            if isinstance(item, ShippedFile):
                _pour(item, into)
    return into.getvalue()


def _entry(folder: str, item: Item) -> dict[str, object]:
    where = {"folder": folder, "path": item.path}
    if isinstance(item, ShippedFile):
        return {**where, "mode": item.mode, "size": item.content.size, "sha256": item.content.sha256}
    return {**where, "target": item.target}


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


def _ask(transport: Transport, shipments: Sequence[Shipment], python: program.Python) -> list[str]:
    """The state of every path, in order."""
    question = [(shipment.folder, [item.path for item in shipment.items]) for shipment in shipments]
    stdin = json.dumps(question).encode()
    done = program.run_packed(transport, "sync", "look", stdin=stdin, timeout=300, python=python)
    states = [] if done.code else program.answer(transport, done)
    if len(states) != sum(len(paths) for _, paths in question):
        raise HostError(f"{transport.host} could not be asked what it has of `sync`", done.complaint)
    return list(map(str, states))


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
