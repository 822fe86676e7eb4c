"""What travels with every run, compiled once: no host of a test has to compile it again, which takes 0.3 s."""

from __future__ import annotations

import atexit
import compileall
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path
from py_compile import PycInvalidationMode

from comborun.remote.library import library_files


@cache
def compiled_library() -> Path:
    """Its files and their bytecode, which counts only for a source of the same content."""
    folder, owner = Path(tempfile.mkdtemp(prefix="combo-library-")), os.getpid()
    folder.chmod(0o755)
    atexit.register(lambda: owner == os.getpid() and shutil.rmtree(folder, ignore_errors=True))
    for name, text in library_files().items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    compileall.compile_dir(folder, quiet=2, invalidation_mode=PycInvalidationMode.CHECKED_HASH)
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
