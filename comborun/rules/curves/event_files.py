"""Scalars in TensorBoard's event files. Pure but for reading.

A file is a sequence of frames: the length of the data (8 bytes), its checksum (4), the data, its checksum (4). The data
is an Event of protocol buffers: its step is read, and the tag and number of each value in its summary. Frames that hold
images or graphs are skipped by their length. The checksum of a length is verified, because it leads to the next frame.
"""

from __future__ import annotations

import struct

from comborun.rules.curves.metrics import STEPS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator, Tuple, Union

    from comborun.rules.curves.scalar_files import ScalarFile

    Field = Tuple[int, Union[int, bytes]]

FRAMES_MOST = 500_000
FRAME_MOST = 1 << 16
"""bytes of an event; a longer one holds pictures, histograms or a graph"""
_VALUES_MOST = 10_000
"""values of one event"""
_FLOAT, _DOUBLE = 1, 2
"""types of a tensor"""
_POLYNOMIAL = 0x82F63B78


def _table() -> list[int]:
    table = []
    for start in range(256):
        found = start
        for _ in range(8):
            found = found >> 1 ^ (_POLYNOMIAL if found & 1 else 0)
        table.append(found)
    return table


_TABLE = _table()


def masked_checksum(data: bytes) -> int:
    """CRC-32C, rotated and shifted as TensorFlow's records have it."""
    found = 0xFFFFFFFF
    for byte in data:
        found = _TABLE[(found ^ byte) & 0xFF] ^ found >> 8
    found ^= 0xFFFFFFFF
    return ((found >> 15 | found << 17) + 0xA282EAD8) & 0xFFFFFFFF


def events(file: ScalarFile) -> bool:
    """Reads the scalars. Returns whether it was read to its end."""
    left = FRAMES_MOST
    with open(file.place, "rb") as stream:
        while True:
            head = stream.read(12)
            if len(head) < 12:
                return True
            length, told = struct.unpack("<QI", head)
            if masked_checksum(head[:8]) != told or left <= 0:
                return False
            left -= 1
            if length > FRAME_MOST:
                stream.seek(length + 4, 1)
                continue
            data = stream.read(length)
            if len(data) < length:
                return True
            stream.seek(4, 1)
            _event(file, data)


def _event(file: ScalarFile, data: bytes) -> None:
    place, summary = 0, b""
    try:
        for number, found in _fields(data):
            if number == 2 and isinstance(found, int):
                place = found
            elif number == 5 and isinstance(found, bytes):
                summary = found
        for at, (number, found) in enumerate(_fields(summary)):
            if at >= _VALUES_MOST:
                return
            if number == 1 and isinstance(found, bytes) and 0 <= place < 1 << 62:
                tag, told = _scalar(found)
                if tag and told is not None:
                    file.add(tag, {STEPS: float(place)}, told)
    except (ValueError, IndexError, struct.error):  # no event, whatever it is
        return


def _scalar(data: bytes) -> tuple[str, float | None]:
    """The tag and the number of a summary's value; None if it is no scalar."""
    tag, told = "", None
    for number, found in _fields(data):
        if number == 1 and isinstance(found, bytes):
            tag = found[:300].decode("utf-8", "replace")
        elif number == 2 and isinstance(found, bytes) and len(found) == 4:
            (told,) = struct.unpack("<f", found)
        elif number == 8 and isinstance(found, bytes):
            told = _tensor(found)
    return tag, told


def _tensor(data: bytes) -> float | None:
    """The number of a tensor that holds one."""
    kind, told = 0, None
    for number, found in _fields(data):
        if number == 1 and isinstance(found, int):
            kind = found
        elif number == 2 and isinstance(found, bytes) and any(size != b"\x08\x01" for _, size in _fields(found)):
            return None
        elif number in (4, 5, 6) and isinstance(found, bytes):
            told = found
    code = {_FLOAT: "<f", _DOUBLE: "<d"}.get(kind)
    if code is None or told is None or len(told) != struct.calcsize(code):
        return None
    found_number: float = struct.unpack(code, told)[0]
    return found_number


def _fields(data: bytes) -> Iterator[Field]:
    """The fields of a message: a number, or bytes. Raises ValueError or IndexError for what is no message."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, kind = key >> 3, key & 7
        if kind == 0:
            found, at = _varint(data, at)
            yield number, found
            continue
        if kind == 2:
            size, at = _varint(data, at)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
        else:
            raise ValueError(kind)
        if at + size > len(data):
            raise ValueError(size)
        yield number, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    found = shift = 0
    while shift < 70:
        byte = data[at]
        found |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return found, at
    raise ValueError(shift)
