"""What is left of runs of `combo calibrate`: `calibrated discard|abandon RUN`, `calibrated abandoned ROOT`."""

from __future__ import annotations

import glob
import os
import re
import shutil

from comborun.host import files, refusal
from comborun.host.incoming import answered, home
from comborun.host.publish import STAMP
from comborun.host.refusal import Refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

_WAIT_S = 10.0
_MARK = ".abandoned-"


def main(arguments: list[str]) -> int:
    """The program's verb."""
    acts: dict[str, Callable[[str], Any]] = {"discard": discard, "abandon": abandon, "abandoned": abandoned}
    return answered("calibrated", lambda: acts[arguments[0]](arguments[1]))


def discard(directory: str) -> None:
    """Remove a run and what it has promised, and only that, when its dispatcher has left."""
    root, run = os.path.split(directory)
    if os.path.basename(root) != ".calibrate" or not re.search(f"{STAMP.pattern}$", run):
        raise Refusal(refusal.USAGE, f"{directory} is no run of a calibration")
    if os.path.isdir(f"{directory}/dispatch"):
        lock = files.lock(f"{directory}/dispatch/lock", _WAIT_S)
        if lock < 0:
            return
    shutil.rmtree(directory, ignore_errors=True)
    leases = os.environ.get("COMBORUN_LEASES") or f"/tmp/comborun-{os.getuid()}"  # noqa: S108 - where leases are
    lease = f"{leases}/{run}.lease"
    if os.path.exists(directory):
        return
    if os.path.exists(lease) and os.stat(lease).st_uid == os.getuid() and files.lock(f"{leases}/lock", _WAIT_S) >= 0:
        files.remove(lease)
    files.remove(f"{root}/{_MARK}{run}")
    try:
        os.rmdir(root)
    except OSError:
        return  # another calibration is there


def abandon(directory: str) -> None:
    """Note that nobody wants a run any more, so that the next calibration removes what is left of it."""
    root, run = os.path.split(directory)
    files.write_text(f"{root}/{_MARK}{run}", "")


def abandoned(root: str) -> list[str]:
    """The runs of which that is noted."""
    marks = glob.glob(f"{glob.escape(home(root))}/{_MARK}*")
    return [f"{home(root)}/{os.path.basename(mark)[len(_MARK) :]}" for mark in sorted(marks)]
