"""Which attempts and which plans there are in a run directory, for both halves."""

from __future__ import annotations

import os

from comborun.rules.names import AttemptLayout, RunLayout, attempt_number, plan_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable


def attempts_of(run: RunLayout, session: str, above: int = 0) -> list[int]:
    """The attempts of a session or a model server with a number above this one, lowest first.

    Gaps end nothing: somebody may have removed a folder. A folder is an attempt if it holds a claim, a begin, an end, a
    grant with something in it, or a result. Else it was made ahead of its turn, or a full disk left it.
    """
    numbers = sorted(filter(lambda number: number > above, map(attempt_number, _entries(run.session(session)))))
    return [number for number in numbers if _is_attempt(run.attempt(session, number))]


def shares_output(at: AttemptLayout) -> bool:
    """Whether its output is that of the process in which it ran with others. A Slurm task's own output may be a link,
    too: to a folder beside it.
    """
    try:
        return "/" in os.readlink(at.output)
    except OSError:
        return False


def newest_plan(directory: str) -> int:
    """The number of the newest plan, which contains the older ones; 1 if there is none."""
    return max(map(plan_number, _entries(directory or ".")), default=0) or 1


def program_digest(files: Iterable[tuple[str, bytes]]) -> str:
    """What tells one host program from another: of the paths in its folder and the contents."""
    import hashlib  # slow to import, and few need it

    found = hashlib.sha256()
    for path, content in sorted(files):
        found.update(b"%s\0%d\0" % (path.encode(), len(content)))
        found.update(content)
    return found.hexdigest()


def _is_attempt(at: AttemptLayout) -> bool:
    if any(map(os.path.exists, (at.claim, at.end, at.begin))):
        return True
    try:
        granted = os.path.getsize(at.grant) > 0
    except OSError:
        granted = False
    return granted or bool(_entries(at.output))


def _entries(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []
