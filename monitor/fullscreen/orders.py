"""What the full screen can order; whoever opens it gives the functions, those of the commands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from comborun.monitor.fleet import Fleet


@dataclass(frozen=True)
class Orders:
    """Each function returns lines for the user, and raises UserError."""

    program: str
    """`combo` as the user can type it"""
    options: str
    """with which a command finds the host"""
    stop: Callable[[tuple[str, ...]], Sequence[str]]
    """some sessions; none named: the whole run"""
    retry: Callable[[tuple[str, ...]], Sequence[str]]
    resume: Callable[[], Sequence[str]]
    pause: Callable[[], Sequence[str]]
    slots: Callable[[int], Sequence[str]]
    fleet: Callable[[], Fleet]
    """the runs on all hosts, looked at again and again until it is closed"""
    words: Callable[[Sequence[str]], Sequence[str]]
    """words of a command about this run -> the command for another process"""
