"""Log lines that show why a program failed, in the order in which they are checked.

They only name a failure that other evidence shows; they never make a session fail. A line that matches `ignore` is
checked by no other pattern, because good runs print it too. A line after which the program made progress is not checked
either. Patterns are Python's regular expressions. One without special characters is searched as plain text, which is
fast; so the table has one line for each wording.
"""

from __future__ import annotations

import re

from comborun.rules import patterns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    Signature = tuple[str, str]

IGNORE = "ignore"

BUILTIN: tuple[tuple[str, tuple[str, ...]], ...] = (
    (IGNORE, ("ERROR_INCOMPATIBLE_DRIVER", "vkCreateInstance failed", "Failed to create any GPU devices")),
    (IGNORE, ("Disabling key-value database because another kit process is locking it",)),
    ("gpu_memory", ("CUDA out of memory", "CUDA error: out of memory", "CUDA_ERROR_OUT_OF_MEMORY")),
    ("gpu_memory", ("cudaErrorMemoryAllocation", "torch.OutOfMemoryError", "torch.cuda.OutOfMemoryError")),
    ("gpu_memory", ("CUBLAS_STATUS_ALLOC_FAILED", "RESOURCE_EXHAUSTED: Out of memory")),
    ("gpu_memory", ("ERROR_OUT_OF_DEVICE_MEMORY", "is less than desired GPU memory utilization")),
    ("gpu_fault", ("ERROR_DEVICE_LOST", "A GPU crash occurred", "GPU crash is detected", "GPU is lost")),
    ("gpu_fault", ("has fallen off the bus", "CUDA error: an illegal memory access")),
    ("gpu_fault", ("CUDA error: unspecified launch failure", "CUDA error: uncorrectable ECC error", "NVRM: Xid")),
    ("gpu_fault", ("Skipping NVIDIA GPU due CUDA being in bad state",)),
    ("disk_full", ("No space left on device", "Disk quota exceeded", "database or disk is full")),
    ("host_memory", ("^MemoryError", "std::bad_alloc", "Cannot allocate memory", "oom-kill")),
    ("host_memory", ("out of memory: Killed process", "Out of memory: Killed process")),
    ("host_memory", ("Unable to allocate [0-9.]+ [KMGT]iB for an array", "DefaultCPUAllocator: (can.t|not enough)")),
    ("host_memory", ("DataLoader worker .* is killed by signal: Killed",)),
    ("server_lost", ("EngineDeadError", "Still waiting for server", "Connection refused", "RayActorError")),
    ("launch_failed", ("Address already in use", "address already in use", "EADDRINUSE")),
    ("launch_failed", ("has failed to listen on any local network address", "Server is already active for display")),
    ("launch_failed", ("Failed to acquire exclusive lock to data store",)),
    ("crashed", ("FIFO server failed to connect to Unity in time", "^Error: signal 11")),
    ("crashed", ("Segmentation fault", "core dumped")),
)
_SPECIAL = frozenset("\\^$*+?{}[]|()")


def find(lines: Sequence[str], own: Iterable[Signature], *, records: int = 0) -> tuple[str, str]:
    """The class of the first signature that matches, and the last line that it matches; both empty if none does.

    `own`: the grid's signatures, which come first. `lines`: the end of a log, after the last progress. If a session has
    left records, a message about a port in use is about another program.
    """
    known = [entry for entry in BUILTIN if not (records and entry[0] == "launch_failed")]
    searched = [(failure, finder) for failure, pattern in own if (finder := _finder(pattern))]
    text = "\n".join(lines)
    searched += [(failure, finder) for failure, wordings in known for finder in _there(wordings, text)]
    for failure, finder in searched:
        if failure == IGNORE:
            lines = [line for line in lines if not finder(line)]
    for failure, finder in searched:
        matches = [] if failure == IGNORE else [line for line in lines if finder(line)]
        if matches:
            return failure, matches[-1]
    return "", ""


def _there(wordings: Iterable[str], text: str) -> list[Callable[[str], object]]:
    """Returns a search for those wordings that occur anywhere in the text. For most logs there are none."""
    found = [one for one in wordings if (re.search(one, text, re.MULTILINE) if set(one) & _SPECIAL else one in text)]
    finder = _finder("|".join(one if set(one) & _SPECIAL else re.escape(one) for one in found)) if found else None
    return [finder] if finder else []


def _finder(pattern: str) -> Callable[[str], object] | None:
    try:
        return patterns.compiled(pattern).search
    except patterns.PatternError:
        return None
