"""The values of `results` that are words: how the records are written, and where."""

from __future__ import annotations

from typing import Annotated

from pydantic import PlainValidator, WithJsonSchema

from comborun.errors import UserError
from comborun.grid.keys.values import guarded, line_of
from comborun.judging import FORMATS, Source
from comborun.text import did_you_mean


def _format(tree: object) -> str:
    word = line_of(tree)
    if word not in FORMATS:
        hint = did_you_mean(word, FORMATS) or "docs/report.md lists them; without it files are known by what is in them"
        raise UserError(f"there is no format `{word}`", hint)
    return word


def _source(tree: object) -> Source:
    match line_of(tree):
        case "output":
            return "output"
        case "log":
            return "log"
        case other:
            hint = "`log` or `output`; which files below {output_dir}, `files` says"
            raise UserError(f"records are not read from `{other}`", hint)


FormatWord = Annotated[str, PlainValidator(guarded(_format)), WithJsonSchema({"enum": list(FORMATS)})]
SourceWord = Annotated[Source, PlainValidator(guarded(_source)), WithJsonSchema({"enum": ["output", "log"]})]
