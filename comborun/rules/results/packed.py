"""Files that a program packed, or wrote with two bytes for each character, as plain ones, and their names."""

from __future__ import annotations

from importlib import import_module

from comborun.rules.results.fields import TORN, UNREADABLE, RefusedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, BinaryIO, Mapping

    Row = Mapping[str, Any]


MARK, WIDE_MARKS = b"\xef\xbb\xbf", (b"\xff\xfe", b"\xfe\xff")
"""byte order marks of UTF-8 and of UTF-16"""
_WIDE_SHOWN = 16
"""bytes by which UTF-16 is known without a mark"""


_PACKED = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\0": "xz", b"(\xb5/\xfd": "zstd", b"PK\x03\x04": "zip"}
_UNPACK = {"gzip": "gzip", "bzip2": "bz2", "xz": "lzma"}
"""packer -> the module that unpacks it"""
_PACKERS = (".gz", ".bz2", ".xz", ".zst")
UNPACKED_MOST = 64 << 20


def unpacked(stream: BinaryIO, packer: str) -> BinaryIO:
    """What a program packed. Raises RefusedError."""
    import io

    try:
        module = import_module(_UNPACK[packer])
    except (KeyError, ImportError):
        raise RefusedError(UNREADABLE, "packed_file", packer=packer) from None
    stream.seek(0)
    try:
        with module.open(stream, "rb") as packed:
            content = packed.read(UNPACKED_MOST + 1)
    except EOFError as error:
        raise RefusedError(TORN, "half_written_archive") from error
    except Exception as error:  # each module has its own
        raise RefusedError(UNREADABLE, "unreadable_archive", error=type(error).__name__) from error
    if len(content) > UNPACKED_MOST:
        raise RefusedError(UNREADABLE, "file_too_large", most_mib=UNPACKED_MOST >> 20)
    if packing(content):  # packed twice
        raise RefusedError(UNREADABLE, "packed_file", packer=packer)
    return io.BytesIO(content)


def wide_encoding(head: bytes) -> str:
    """The encoding of text with two bytes for each character, as PowerShell and Excel write it; empty for others."""
    if head.startswith(WIDE_MARKS):
        return "utf-16"
    first = head[:_WIDE_SHOWN]
    for zeros, others, encoding in ((first[1::2], first[::2], "utf-16-le"), (first[::2], first[1::2], "utf-16-be")):
        if len(first) == _WIDE_SHOWN and not any(zeros) and all(others):
            return encoding
    return ""


def narrowed(stream: BinaryIO, encoding: str) -> BinaryIO:
    """Such text as UTF-8. Raises RefusedError."""
    import io

    stream.seek(0)
    content = stream.read(UNPACKED_MOST + 1)
    if len(content) > UNPACKED_MOST:
        raise RefusedError(UNREADABLE, "file_too_large", most_mib=UNPACKED_MOST >> 20)
    return io.BytesIO(content.decode(encoding, "replace").encode())


def unpacked_name(path: str) -> str:
    """The name without that of a packer: `rows.jsonl` of `rows.jsonl.gz`."""
    return path.rpartition(".")[0] if path.lower().endswith(_PACKERS) else path


def packing(start: bytes) -> str:
    """The program that packed a file; empty for plain text. Archives with a known suffix are read as they are."""
    return next((name for magic, name in _PACKED.items() if start.startswith(magic)), "")
