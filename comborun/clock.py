"""A clock that counts while this machine is asleep."""

from __future__ import annotations

import time


def elapsed() -> float:
    """Seconds since some moment; never goes back, and goes on while a laptop is asleep.

    Python's own monotonic clock stops then: on Linux it is CLOCK_MONOTONIC, on macOS mach_absolute_time.
    """
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))  # that of macOS goes on
