"""A laptop's folder and a host's, and a way between them that is real and counted."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from comborun.grid.keys.launch import SyncKeys
from comborun.remote import program
from comborun.remote.shipping import Shipment, compare_files, deliver, shipped_lines, survey
from comborun.remote.transport import Completed, LocalTransport
from comborun.text import MIB


def receive(root: Path, stream: bytes) -> Completed:
    """What the host says to a stream of files."""
    return program.run_packed(LocalTransport(), "sync", "receive", str(root), stdin=stream)


class Counting(LocalTransport):
    """The local host, under another name, with what it was sent."""

    host = "box"

    def __init__(self) -> None:
        self.sent: list[int] = []

    def run(self, script: str, *args: str, stdin: bytes = b"", **options: Any) -> Completed:
        self.sent.append(len(stdin))
        return super().run(script, *args, stdin=stdin, **options)


@dataclass
class Desk:
    """A folder here and a folder there."""

    here: Path
    there: Path
    root: Path
    transport: Counting = field(default_factory=Counting)

    def put(self, name: str, content: bytes | str = "x\n", mode: int = 0o644) -> Path:
        path = self.here / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        path.chmod(mode)
        return path

    def shipments(self, *exclude: str, max_size: int = MIB, to: str = "") -> tuple[Shipment, ...]:
        return survey(
            [SyncKeys.model_construct(source=".", to=to or str(self.there), exclude=exclude, max_size=max_size)],
            self.here,
        )

    def ship(self, *exclude: str) -> tuple[str, ...]:
        """Ship it as a launch does; what is told of it."""
        deliveries = compare_files(self.transport, self.shipments(*exclude))
        deliver(self.transport, deliveries, str(self.root))
        return tuple(shipped_lines(deliveries))

    def arrived(self) -> dict[str, bytes]:
        return {str(p.relative_to(self.there)): p.read_bytes() for p in self.there.rglob("*") if p.is_file()}


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    for name in ("here", "runs"):
        (tmp_path / name).mkdir()
    return Desk(tmp_path / "here", tmp_path / "there", tmp_path / "runs")
