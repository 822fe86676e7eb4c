"""Holds what a command answers with --json against the schema of all answers, in which no object has other keys."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from comborun.answers.schema import ANSWERS, answers_schema


def checked(words: list[str], document: Any) -> Any:
    """The document. The words are those of the command."""
    name = " ".join(words[:2]) if " ".join(words[:2]) in ANSWERS else words[0]
    shape = {"$ref": f"#/$defs/command_{name.replace(' ', '_')}", "$defs": schema()["$defs"]}
    if wrong := best_match(Draft202012Validator(shape).iter_errors(document)):
        pytest.fail(f"combo {' '.join(words)}: {wrong.json_path}: {wrong.message[:500]}")
    return document


@cache
def schema() -> Any:
    return _strict(json.loads(answers_schema()))


def _strict(shape: Any) -> Any:
    if isinstance(shape, list):
        return [_strict(one) for one in shape]
    if not isinstance(shape, dict):
        return shape
    open_ended = "properties" not in shape or shape.get("required") == ["code"]  # a fact has the fields of its code
    return {
        **{key: _strict(one) for key, one in shape.items()},
        **({} if open_ended else {"additionalProperties": False}),
    }
