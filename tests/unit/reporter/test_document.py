"""The report's JSON document and its schema follow from the classes of the summary."""

from __future__ import annotations

from dataclasses import dataclass

import jsonschema
import pytest

from comborun.reporter.json_types import FourDecimals, Memory, TextOrNull
from comborun.reporter.pages.document import shape_of, table


@dataclass(frozen=True)
class Wheel:
    name: str
    turns: FourDecimals | None = None


@dataclass(frozen=True)
class Robot:
    wheels: tuple[Wheel, ...]
    """from left
    to right"""
    speed: tuple[float, float] = (0.1 + 0.2, 1.0)
    memory: Memory | None = 2048
    note: TextOrNull = ""
    spare: Wheel | None = None

    @property
    def count(self) -> int:
        """Of its wheels."""
        return len(self.wheels)


ROBOT = Robot((Wheel("left", 1.234567), Wheel("right")))


def test_a_field_is_a_key_in_the_form_of_its_type() -> None:
    assert shape_of(Robot).write(ROBOT) == {
        "wheels": [{"name": "left", "turns": 1.2346}, {"name": "right", "turns": None}],
        "speed": (0.3, 1.0),
        "memory": 2,
        "note": None,
        "spare": None,
    }


def test_the_schema_has_the_docstrings_and_refuses_other_types() -> None:
    schema = table(Robot, "wheels count speed").schema
    keys = schema["properties"]
    assert (keys["wheels"]["description"], keys["count"]["description"]) == ("from left to right", "Of its wheels.")
    jsonschema.validate({"wheels": [{"name": "left", "turns": None}], "count": 1, "speed": [0, 1]}, schema)
    for wrong in ({"count": -1}, {"speed": [0]}, {"wheels": [{"name": 7, "turns": 1.5}]}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({"wheels": [], "count": 1, "speed": [0, 1], **wrong}, schema)


def test_a_key_may_come_from_elsewhere_and_be_left_out() -> None:
    shape = table(Robot, "turns=spare.turns note? spare? wheels? kept=count")
    assert shape.write(Robot(())) == {"turns": None, "kept": 0}
    assert shape.write(Robot((), spare=Wheel("fifth", 2.0))) == {
        "turns": 2.0,
        "spare": {"name": "fifth", "turns": 2.0},
        "kept": 0,
    }
    assert shape.schema["required"] == ["turns", "kept"]
    assert shape.schema["properties"]["turns"]["type"] == ["number", "null"]


def test_a_key_that_the_class_does_not_have_is_an_error() -> None:
    with pytest.raises(AttributeError, match="Robot has no arms"):
        table(Robot, "arms")
