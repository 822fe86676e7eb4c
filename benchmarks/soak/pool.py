"""Several rounds at once, each in a process of its own that cleans up after itself when it is told to leave."""

from __future__ import annotations

import multiprocessing
import signal
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from types import FrameType

from rounds import Played, play
from scene import Scene


def each_played(scenes: Sequence[Scene], jobs: int) -> Iterator[Played]:
    """In the order in which they end. When the caller leaves, so do the rounds that are under way."""
    fork = multiprocessing.get_context("fork")
    coming = deque(scenes)
    playing: dict[Connection, multiprocessing.process.BaseProcess] = {}
    try:
        while coming or playing:
            while coming and len(playing) < jobs:
                ours, theirs = fork.Pipe(duplex=False)
                playing[ours] = fork.Process(target=_play_into, args=(theirs, coming.popleft()))
                playing[ours].start()
                theirs.close()
            for ready in wait(list(playing)):
                assert isinstance(ready, Connection)
                played = _told(ready)
                playing.pop(ready).join()
                yield played
    finally:
        for process in playing.values():
            process.terminate()
        for process in playing.values():
            process.join()


def _told(ready: Connection) -> Played:
    """Raises RuntimeError where a round's process left without a word: its own traceback is above it on stderr."""
    try:
        played: Played = ready.recv()
    except EOFError:
        raise RuntimeError("a round's process ended without saying how the round went") from None
    return played


def _play_into(told: Connection, scene: Scene) -> None:
    """Ctrl-C reaches all processes of a terminal: only the parent heeds it, and ends its rounds with TERM."""
    signal.signal(signal.SIGINT, lambda *_: None)
    signal.signal(signal.SIGTERM, _leave)
    with suppress(KeyboardInterrupt):
        told.send(play(scene))


def _leave(number: int, _: FrameType | None) -> None:
    signal.signal(number, lambda *_: None)  # once: what cleans up is not to be interrupted
    raise KeyboardInterrupt
