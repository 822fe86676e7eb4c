"""Records of a run, as tests write them."""

from __future__ import annotations

from comborun.rules import records


def record(**fields: object) -> str:
    """`class_` stands for the field `class`."""
    return records.render((key.rstrip("_"), value) for key, value in fields.items())
