"""What a preset says of its program beside the keys of a grid: for people, for `combo init`, and for the report."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal, get_args

from pydantic import Field, PlainValidator, WithJsonSchema

from comborun.errors import UserError
from comborun.grid.keys.shapes import Keys, OneOrMany
from comborun.grid.keys.values import AsWritten, AttributeName, Line, Text, guarded, line_of
from comborun.text import did_you_mean

ProgramKind = Literal["evaluation", "training", "server"]
Counting = Literal["serial", "batch", "fixed", "first-k", "unknown"]
"""which episodes a program counts: all, one after another; all of each batch; all, of one length; the first K that
end"""

KINDS: tuple[ProgramKind, ...] = get_args(ProgramKind)
COUNTINGS: tuple[Counting, ...] = get_args(Counting)


def _one_of(known: tuple[str, ...]) -> Callable[[object], str]:
    def read(tree: object) -> str:
        word = line_of(tree)
        if word not in known:
            raise UserError(f"there is no `{word}` here", did_you_mean(word, known))
        return word

    return guarded(read)


Kind = Annotated[ProgramKind, PlainValidator(_one_of(KINDS)), WithJsonSchema({"enum": list(KINDS)})]
CountingWord = Annotated[Counting, PlainValidator(_one_of(COUNTINGS)), WithJsonSchema({"enum": list(COUNTINGS)})]
Lines = Annotated[tuple[Line, ...], OneOrMany()]


class AttributeKeys(Keys):
    """Attributes of the two axes that the command takes, each with what it is."""

    policy: dict[AttributeName, Line] = Field(default={}, description="of policies")
    environment: dict[AttributeName, Line] = Field(default={}, description="of environments")
    server: dict[AttributeName, Line] = Field(default={}, description="of a model server")


class DefaultKeys(Keys):
    """Attributes that need not be given."""

    policy: dict[AttributeName, AsWritten] = Field(default={}, description="of policies")
    environment: dict[AttributeName, AsWritten] = Field(default={}, description="of environments")


class AboutKeys(Keys):
    """The map `about` of a preset."""

    summary: Line = Field(default="", description="the program, in one line")
    kind: Kind = Field(default="evaluation", description="evaluation, training, or server: one that others ask")
    counting: CountingWord = Field(default="unknown", description="which episodes of those that it begins it counts")
    shards: Line = Field(default="", description="how a combo can be cut, or why it can't")
    unpaired: Line = Field(default="", description="why episodes of two policies are no pairs; else they may be")
    attributes: AttributeKeys = Field(default_factory=AttributeKeys, description="what the command takes of each axis")
    defaults: DefaultKeys = Field(default_factory=DefaultKeys, description="attributes that need not be given")
    needs: Lines = Field(default=(), description="what has to be there before the first session starts")
    notes: Lines = Field(default=(), description="what must be known, each with its reason")
    starter: Text = Field(default="", description="the grid that `combo init --preset` writes, below its `preset` line")


class PresetOwnKeys(Keys):
    """The part of a preset that no grid has."""

    about: AboutKeys = Field(default_factory=AboutKeys, description="the program")
