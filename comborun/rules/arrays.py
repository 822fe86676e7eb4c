"""Rows in `.npz` archives of numpy arrays, such as evaluations.npz of Stable-Baselines3. Nothing is unpickled. Pure."""

from __future__ import annotations

from comborun.rules.documents import member, opened
from comborun.rules.fields import FORMAT, TORN, UNREADABLE, RefusedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator, Tuple

    from comborun.rules.readers import Entry, Whole

    Array = Tuple[Tuple[int, ...], list[Any]]

_NAMES = {"successes": "success", "results": "return", "returns": "return", "rewards": "return", "ep_lengths": "length"}
"""what one value of an array is called"""
_CODES = {"b1": "?", "i1": "b", "u1": "B", "i2": "h", "u2": "H", "i4": "i", "u4": "I", "i8": "q", "u8": "Q"}
_CODES.update({"f2": "e", "f4": "f", "f8": "d"})
_MAGIC = b"\x93NUMPY"
_ARRAYS_MOST = 100
_HEADER_MOST = 1 << 16


def read(file: Whole) -> Iterator[Entry]:
    """An episode for each value of the arrays; of several evaluations in one file the last. Raises RefusedError."""
    arrays = _arrays(file.data)
    known = [name for name in arrays if name in _NAMES or name == file.identity.success.name]
    if not known:
        raise RefusedError(
            FORMAT, f"arrays {', '.join(sorted(arrays)[:5]) or 'of no name'}: none with an episode's outcome"
        )
    shape = arrays[known[0]][0]
    columns: dict[str, list[Any]] = {}
    for name, (own, values) in arrays.items():
        if own == shape:
            columns[_NAMES.get(name, name)] = values[-shape[-1] :] if shape and shape[-1] else []
    evaluations = shape[0] if len(shape) > 1 else 1
    remark = f"the last of {evaluations} evaluations counts" if evaluations > 1 else ""
    for at in range(shape[-1] if shape else 0):
        yield 0, {name: column[at] for name, column in columns.items()}, "" if at else remark, at


def _arrays(data: bytes) -> dict[str, Array]:
    with opened(data) as archive:
        names = [name for name in archive.namelist()[:_ARRAYS_MOST] if name.endswith(".npy")]
        return {name[: -len(".npy")]: _array(member(archive, name), name) for name in names}


def _array(data: bytes, name: str) -> Array:
    """Shape and values, in the order of C. Raises RefusedError."""
    import ast
    import struct

    if not data.startswith(_MAGIC) or len(data) < 12:
        raise RefusedError(UNREADABLE, f"{name} in it is no array")
    wide = data[6] > 1
    (length,) = struct.unpack_from("<I" if wide else "<H", data, 8)
    start = (12 if wide else 10) + length
    try:
        header = ast.literal_eval(data[start - length : start].decode("latin-1")) if length <= _HEADER_MOST else {}
        kind, shape, transposed = str(header["descr"]), tuple(header["shape"]), header["fortran_order"]
    except (ValueError, SyntaxError, KeyError, TypeError, MemoryError, RecursionError) as error:
        raise RefusedError(UNREADABLE, f"{name} in it has no header that can be read") from error
    if "O" in kind:
        raise RefusedError(UNREADABLE, f"{name} in it holds Python objects, which are never unpickled")
    code = _CODES.get(kind[1:])
    if code is None or len(shape) > 2 or (transposed and len(shape) > 1):
        return (), []
    count = 1
    for size in shape:
        count *= size if isinstance(size, int) and size >= 0 else 0
    if count * struct.calcsize(code) > len(data) - start:
        raise RefusedError(TORN, f"{name} in it is cut off")
    return shape, list(struct.unpack_from(f"{'>' if kind[0] == '>' else '<'}{count}{code}", data, start))
