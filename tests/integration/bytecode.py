"""What travels with every run, compiled once for all tests: no host of a test has to compile it again."""

from __future__ import annotations

import compileall
import fcntl
import os
import shutil
from functools import cache
from pathlib import Path
from py_compile import PycInvalidationMode

from comborun.remote.library import library_files


@cache
def compiled_library() -> Path:
    """Its files and their bytecode, which counts only for a source of the same content."""
    place = Path(os.environ["COMPILED_LIBRARY"])
    folder, made = place / "lib", place / "made"
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the first worker makes it
        if not made.exists():
            for name, text in library_files().items():
                file = folder / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
            compileall.compile_dir(folder, quiet=2, invalidation_mode=PycInvalidationMode.CHECKED_HASH)
            made.touch()
    return folder


def share(source: str, target: str) -> None:
    """Link bytecode, which is replaced and never written; copy anything else, and what can't be linked."""
    linked = source.endswith(".pyc")
    try:
        if linked:
            os.link(source, target)
    except OSError:
        linked = False
    if not linked:
        shutil.copyfile(source, target)
