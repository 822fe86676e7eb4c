"""Plates drawn by two processes at once: this one, and a second one that is started for a large report.

Who draws a plate changes no byte of it. The second process is this interpreter started anew, since a fork would copy
locks that other threads hold. It reads pickled plates and answers with their pickled drawings. Where it can't be had,
or fails, all is drawn here: an error is told as if there were no second one.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from collections import deque
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from comborun.reporter.figures.plate import Drawn, Plate

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

FEWEST = 40
"""combos from which on a second process saves more than it costs"""


class Press:
    """A second process that draws."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "comborun.reporter.figures.press"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path or str(Path.cwd()) for path in sys.path)},
            start_new_session=True,  # Ctrl-C is for the one that owns it
        )

    def draw(self, plate: Plate) -> Drawn | None:
        """None when it can't: nothing more comes from it then."""
        assert self._process.stdin
        assert self._process.stdout
        try:
            self._process.stdin.write(pickle.dumps(plate))
            self._process.stdin.flush()
            drawn = pickle.load(self._process.stdout)  # noqa: S301 - from a process of our own
        except (OSError, EOFError, ValueError, TypeError, AttributeError, pickle.PickleError):
            return None
        return drawn if isinstance(drawn, Drawn) else None

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                assert stream
                stream.close()


@contextmanager
def second_press(combos: int) -> Iterator[Press | None]:
    """None for a report that is soon drawn, on a machine with one processor, and where no process can be started."""
    try:
        press = Press() if combos >= FEWEST and _processors() > 1 and sys.executable else None
    except OSError:
        press = None
    try:
        yield press
    finally:
        if press:
            press.end()


class Drawing:
    """Plates that are being drawn. The second process is at work from the start, this one from `finish` on."""

    def __init__(self, plates: Sequence[Plate], press: Press | None) -> None:
        self._plates = plates
        self._waiting = deque(sorted(plates, key=_area, reverse=True))
        self._drawn: dict[Plate, Drawn] = {}
        self._press = press
        self._beside = threading.Thread(target=self._draw_beside, daemon=True)
        self._beside.start()

    def finish(self) -> dict[Plate, Drawn]:
        """Every plate with its drawing, in their order."""
        self._draw_here()
        self._beside.join()
        self._draw_here()  # what the second one has given back
        return {plate: self._drawn[plate] for plate in self._plates}

    def _draw_here(self) -> None:
        for plate in _taken(self._waiting):
            self._drawn[plate] = plate.draw()

    def _draw_beside(self) -> None:
        for plate in _taken(self._waiting) if self._press else ():
            drawn = self._press.draw(plate) if self._press else None
            if drawn is None:
                self._waiting.append(plate)
                return
            self._drawn[plate] = drawn


def _area(plate: Plate) -> float:
    """Square inches: what takes longest is drawn first, so that both end at about the same time."""
    return sum(part.width * part.height for part in plate.drawings)


def _taken(waiting: deque[Plate]) -> Iterator[Plate]:
    """One after the other until none is left; two may take from the same."""
    with suppress(IndexError):
        while True:
            yield waiting.popleft()


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Draw what is asked for until there is nobody left who asks."""
    with suppress(EOFError):
        while True:
            plate: Plate = pickle.load(requests)  # noqa: S301 - from the process that started this one
            pickle.dump(plate.draw(), answers)
            answers.flush()


def _warm_up() -> None:
    """Load what the first plate will need, while the other process still counts."""
    from comborun.reporter.figures.sheet import Sheet, drawing

    with drawing():
        sheet = Sheet(1, 1)
        sheet.text((0.5, 0.5), "0")
        sheet.files()


if __name__ == "__main__":
    _warm_up()
    serve(sys.stdin.buffer, sys.stdout.buffer)
