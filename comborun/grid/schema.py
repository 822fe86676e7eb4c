"""The JSON Schema of a grid file (draft 2020-12), with which editors complete keys and mark typos.

`combo schema > comborun/grid/grid.schema.json` writes the copy that ships.
"""

from __future__ import annotations

import json
from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from comborun.grid.model import GridFile

DIALECT = "https://json-schema.org/draft/2020-12/schema"


class _Generator(GenerateJsonSchema):
    """A key may be left out, but never null: None stands for a key that is not there."""

    def field_title_should_be_set(self, schema: object) -> bool:
        del schema
        return False

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        inner = self.generate_inner(schema["schema"])
        default = schema.get("default")
        return {**inner, "default": default} if isinstance(default, (int, float, str)) else inner


def grid_schema() -> dict[str, Any]:
    """What a grid file may hold; the checks that need more than one key at a time are `combo check`'s."""
    schema = GridFile.model_json_schema(schema_generator=_Generator)
    for key in schema["$defs"]["Override"]["properties"].values():
        key.pop("default", None)  # there the grid's own value is the default
    return {"$schema": DIALECT, **schema}


def schema_text() -> str:
    return json.dumps(grid_schema(), indent=2, ensure_ascii=False) + "\n"
