"""What a person changes of a run while it goes on (`combo set`). Pure.

dispatch/settings holds each value beside the grid's value at that time. It counts until the grid has another value.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Mapping

PARALLEL = "parallel"
"""has a file of its own, `slots`, which may be edited"""
FIELDS = {"use_gpus": "gpus", "reserve.gpu_memory": "reserve_gpu_mib", "reserve.memory": "reserve_memory_mib"}
"""key of the grid -> field of dispatch/policy.json; memory is in MiB"""
BECAUSE = "because"
TAKES = {PARALLEL: "a whole number from 1 to 999999", "use_gpus": "indexes of GPUs, each once, such as 0,1,3"}
"""the values of a key; the others take sizes"""
_OF_GRID = "_of_grid"
_NUMBER, _GPUS = re.compile("[0-9]{1,9}"), re.compile("[0-9]{1,4}(,[0-9]{1,4})*")


def is_value(key: str, value: str) -> bool:
    """Whether a key of the grid may have this value."""
    if key == PARALLEL:
        return re.fullmatch("[1-9][0-9]{0,5}", value) is not None
    if key == "use_gpus":
        return _GPUS.fullmatch(value) is not None and len({*map(int, value.split(","))}) == value.count(",") + 1
    return key in FIELDS and _NUMBER.fullmatch(value) is not None


def unit(key: str) -> str:
    """What follows the number in words."""
    return "MiB" if key.startswith("reserve.") else ""


def changed(record: Mapping[str, Any], policy: Mapping[str, str], values: Mapping[str, str]) -> dict[str, str]:
    """The record with these values. `policy`: as the grid has it."""
    new = {FIELDS[key]: value for key, value in values.items() if key in FIELDS}
    was = {f"{field}{_OF_GRID}": policy.get(field, "") for field in new}
    return {**{key: value for key, value in record.items() if isinstance(value, str)}, **new, **was}


def in_force(record: Mapping[str, Any], policy: Mapping[str, str]) -> dict[str, str]:
    """The fields of the policy that a person has changed since the grid had its present values."""
    return {
        field: record[field]
        for key, field in FIELDS.items()
        if is_value(key, str(record.get(field, ""))) and record.get(f"{field}{_OF_GRID}") == policy.get(field, "")
    }
