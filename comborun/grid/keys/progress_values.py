"""The values below `progress`."""

from __future__ import annotations

from typing import Annotated

from pydantic import PlainValidator, WithJsonSchema

from comborun.errors import UserError
from comborun.grid.keys.quantity import parse_whole
from comborun.grid.keys.values import guarded, line_of, refusal, scalar_of
from comborun.grid.yaml_tree import Kind
from comborun.judging import compile_pattern, has_total

_ORIGINS = (-1, 0, 1)


def _pattern(tree: object) -> str:
    return compile_pattern(line_of(tree)).pattern


def _counts_from(tree: object) -> int:
    scalar = scalar_of(tree)
    if scalar.quoted:
        raise UserError(f'"{scalar.text}" is text, and a whole number is wanted', "write it without quotes")
    value = parse_whole(scalar.text)
    if value not in _ORIGINS:
        hint = "0 or 1: what the first episode is called when it begins; -1 where those that ended are named, from 0"
        raise UserError(f"{value} is nothing that programs count from", hint)
    return value


def _flag(tree: object) -> bool:
    scalar = scalar_of(tree)
    if scalar.kind is not Kind.BOOLEAN:
        shown = f'"{scalar.text}"' if scalar.quoted else f"`{scalar.text}`"
        raise UserError(f"{shown} is neither true nor false", "write true or false, without quotes")
    return scalar.text.lower() == "true"


def check_each(pattern: str | None, counts_from: int | None) -> None:
    """Refuse `each` where there is no bar that it could speak of."""
    if pattern is None:
        raise refusal(UserError("`each` without a `pattern`", "which bar is it that starts again?"))
    if not has_total(compile_pattern(pattern)):
        hint = r"such as '(\d+)/(\d+) \[': the total is what `each` episodes stand for"
        raise refusal(UserError(f"`each` needs a total, and `{pattern}` has no second group for one", hint))
    if counts_from is not None:
        hint = "leave one out: a bar that starts again counts what is done, from 0"
        raise refusal(UserError("`each` and `counts_from` say two things of one number", hint))


LogPattern = Annotated[str, PlainValidator(guarded(_pattern)), WithJsonSchema({"type": "string", "minLength": 1})]
CountsFrom = Annotated[int, PlainValidator(guarded(_counts_from)), WithJsonSchema({"enum": list(_ORIGINS)})]
Flag = Annotated[bool, PlainValidator(guarded(_flag)), WithJsonSchema({"type": "boolean"})]
