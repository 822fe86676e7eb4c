"""One round: launch, let the faults happen, bring the run to its end as a user would, look."""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from types import FrameType

from bed import Bed, bed, holding, send
from check import Found, found, survivors
from faults import FAULTS, OF_A_DISK, grow
from scene import GROWN, Scene

KILL, TRIES = 9, 6
END_S = 60.0
"""seconds after which a run that goes on by itself should have come to its end"""


@dataclass(frozen=True)
class Played:
    scene: Scene
    hit: tuple[str, ...]
    """the faults that found something to hit"""
    tries: int
    """commands that it took to bring the run to its end"""
    found: Found | None
    """None when the run could not be looked at"""
    seconds: float
    flaws: tuple[str, ...]
    story: str
    """what `combo` said, the events, and the ends"""


def play(scene: Scene) -> Played:
    began = time.monotonic()
    with bed(scene.multiplexer, own_disk=any(fault.kind in OF_A_DISK for fault in scene.faults)) as made:
        made.grid.write_text(scene.grid(made.ledger))
        hit: list[str] = []
        tries, seen, flaws = 0, None, list[str]()
        try:
            now = _suffer(made, scene, hit)
            tries, seen = _bring_to_end(made, now)
            flaws += _flaws(made, seen)
        except (OSError, TimeoutError, AssertionError, ValueError) as error:
            flaws.append(f"{type(error).__name__}: {error}")
        story = _story(made)
    return Played(scene, tuple(hit), tries, seen, time.monotonic() - began, tuple(flaws), story)


def _suffer(made: Bed, scene: Scene, hit: list[str]) -> Scene:
    """Launch, and let the faults happen at their moments; the scene as it is then planned."""
    _open(made, scene)
    began = time.monotonic()
    for fault in scene.faults:
        time.sleep(max(0.0, began + fault.at - time.monotonic()))
        if fault.kind == GROWN:
            scene = grow(made, scene)
            hit.append(GROWN)
        elif FAULTS[fault.kind](made, fault):
            hit.append(fault.kind)
    return scene


def _open(made: Bed, scene: Scene) -> None:
    children = [made.begin(*made.launch()) for _ in range(2 if scene.opening == "launched twice" else 1)]
    if scene.opening == "launch killed":
        time.sleep(scene.faults[0].span)
        send(children[0], KILL)
    for child in children:
        made.wait(child)


def _bring_to_end(made: Bed, scene: Scene) -> tuple[int, Found | None]:
    """The same command again, then `combo resume`, in turn, until nothing is missing; how many it took."""
    seen = None
    for tries in range(1, TRIES + 1):
        made.combo(*(made.launch() if tries % 2 or not made.run else ["resume", made.run.name]))
        if not made.run:
            continue
        _await_end(made)
        seen = found(made, scene)
        if not seen.missing and (made.run / "dispatch/done").exists():
            return tries, seen
    return TRIES, seen


def _await_end(made: Bed) -> None:
    """Until the dispatcher has left, or holds and nothing runs."""
    began = time.monotonic()
    while time.monotonic() < began + END_S:
        held = made.record("dispatch/hold") and not made.live_attempts
        if held or not made.dispatcher.lives:
            return
        time.sleep(0.02)
    raise TimeoutError(f"the run has not come to its end within {END_S:g} s")


def _flaws(made: Bed, seen: Found | None) -> Iterator[str]:
    if seen is None:
        yield f"no run is there after {TRIES} launches"
        return
    yield from seen.flaws()
    if seen.missing:
        yield f"{len(seen.missing)} episodes are still missing after {TRIES} commands: {sorted(seen.missing)[:5]}"
    if len(made.runs) > 1:
        yield f"{len(made.runs)} runs of one grid: {', '.join(run.name for run in made.runs)}"
    yield from survivors(made)
    if made.bystander.poll() is not None:
        yield "a process that has nothing to do with the run was ended"


def _story(made: Bed) -> str:
    parts = [made.said.read_text(errors="replace") if made.said.exists() else ""]
    if made.run:
        named = [made.run / "dispatch" / name for name in ("events.jsonl", "out", "hold", "queue.jsonl")]
        for path in [*named, *sorted(made.run.glob("sessions/*/attempt-*/end"))]:
            parts += [f"--- {path.relative_to(made.run)}", path.read_text(errors="replace")] if path.exists() else []
        parts += ["--- who has files of the run open", *holding(made.run)]
    return "\n".join(parts)


# Several rounds at once, each in a process of its own that cleans up after itself when it is told to leave


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
