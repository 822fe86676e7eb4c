"""Keeps compiled templates in `__pycache__` beside them, as Python does with modules."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path

from jinja2.bccache import Bucket, FileSystemBytecodeCache


class CompiledTemplates(FileSystemBytecodeCache):
    def __init__(self, folder: Path) -> None:
        super().__init__(str(folder / "__pycache__"), f"%s.{sys.implementation.cache_tag}.jinja")

    def load_bytecode(self, bucket: Bucket) -> None:
        with suppress(OSError):
            super().load_bytecode(bucket)

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Where the folder can be written to, and if Python writes compiled modules at all."""
        if not sys.dont_write_bytecode:
            with suppress(OSError):
                Path(self.directory).mkdir(exist_ok=True)
                super().dump_bytecode(bucket)
                Path(self._get_cache_filename(bucket)).chmod(0o644)
