"""Keeps compiled templates in `__pycache__` beside them, as Python does with modules."""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from jinja2.bccache import Bucket, BytecodeCache


class CompiledTemplates(BytecodeCache):
    def __init__(self, folder: Path) -> None:
        self.folder = folder / "__pycache__"

    def load_bytecode(self, bucket: Bucket) -> None:
        """What was made of another source, or by another version, is not loaded."""
        with suppress(OSError), self._path(bucket).open("rb") as file:
            bucket.load_bytecode(file)

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Where the folder can be written to, and if Python writes compiled modules at all."""
        if sys.dont_write_bytecode:
            return
        with suppress(OSError):
            self.folder.mkdir(exist_ok=True)
            descriptor, name = tempfile.mkstemp(dir=self.folder)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    bucket.write_bytecode(file)
                Path(name).chmod(0o644)
                Path(name).replace(self._path(bucket))
            except BaseException:
                Path(name).unlink()
                raise

    def _path(self, bucket: Bucket) -> Path:
        return self.folder / f"{bucket.key}.{sys.implementation.cache_tag}.jinja"
