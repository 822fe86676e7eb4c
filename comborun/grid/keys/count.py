"""A count that may differ from combo to combo: a number, or the attribute of a policy or environment that holds it."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import PlainValidator, WithJsonSchema

from comborun.errors import UserError
from comborun.grid.keys.quantity import parse_whole
from comborun.grid.keys.values import guarded, scalar_of

OWNED = re.compile(r"\{(policy|environment)\.([A-Za-z0-9_.-]+)\}")
"""an attribute of a combo's policy or environment"""


def _count(tree: object) -> str:
    text = scalar_of(tree).text
    if OWNED.fullmatch(text):
        return text
    if not text.startswith("{") and parse_whole(text) < 1:
        raise UserError(f"{text} is too small", "at least 1")
    if text.startswith("{"):
        raise UserError(f"`{text}` is no number", "a number, or an attribute that holds one: {environment.envs}")
    return text


_SCHEMA: dict[str, Any] = {
    "anyOf": [{"type": "integer", "minimum": 1}, {"type": "string", "pattern": f"^{OWNED.pattern}$"}]
}
Count = Annotated[str, PlainValidator(guarded(_count)), WithJsonSchema(_SCHEMA)]
