"""The keys of a grid file, typed: what pydantic checks, what the JSON Schema says and what docs/grid.md lists."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, WrapValidator, model_validator
from pydantic_core import core_schema

from comborun.errors import UserError
from comborun.grid.progress_values import CountsFrom, Flag, LogPattern
from comborun.grid.values import (
    AsWritten,
    AttributeName,
    Glob,
    GpuCount,
    Host,
    Line,
    Name,
    NotNegative,
    Pattern,
    PollSeconds,
    Positive,
    Root,
    Seconds,
    SecretSourceWord,
    Size,
    Text,
    UnitWord,
    VariableName,
    Workdir,
    refusal,
)
from comborun.grid.yaml_tree import Items, Kind, Map, Scalar
from comborun.suggest import did_you_mean

DEFAULT_ROOT = "~/comborun"
DEFAULT_POLL = 60.0
DEFAULT_SHIPPED = 1 << 30


class OneOrMany:
    """Annotates a tuple: a single value may stand without its brackets."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        return core_schema.no_info_before_validator_function(_bracketed, handler(source))

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        many = handler(schema)
        return {"anyOf": [many["items"], many]}


class OrNone:
    """Annotates a map: the word `none` may stand in its place."""

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        return {"anyOf": [{"const": "none"}, handler(schema)]}


def _bracketed(tree: object) -> object:
    if not isinstance(tree, Scalar):
        return tree
    items = Items(tree.place)
    items.append(tree)
    return items


def _map_or_none(tree: object, handler: Any) -> Any:
    if isinstance(tree, Scalar) and tree.kind is Kind.TEXT:
        if tree.text == "none":
            return None
        hint = did_you_mean(tree.text, ("none",))
        raise refusal(UserError(f"`{tree.text}` where a map or the word `none` belongs", hint))
    return handler(tree)


def _entries(tree: object) -> object:
    """An axis, list or map, as a list of maps with `name` and `attributes`."""
    if isinstance(tree, Map):
        pairs: list[tuple[Any, Any]] = [(tree.written[name], value) for name, value in tree.items()]
    elif isinstance(tree, Items):
        pairs = [(entry, Scalar("", tree.place, Kind.NULL)) for entry in tree]
    else:
        return tree
    return [
        {"name": name} if isinstance(value, Scalar) and value.kind is Kind.NULL else _entry(name, value)
        for name, value in pairs
    ]


def _entry(name: Scalar, value: object) -> dict[str, object]:
    return {"name": name, "attributes": value}


class Keys(BaseModel):
    """A map of a grid file: nothing but the keys that are named."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class AxisEntry(Keys):
    name: Name
    attributes: dict[AttributeName, AsWritten] = {}


_ATTRIBUTES = {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}}
_AXIS = {
    "anyOf": [
        {"type": "array", "minItems": 1, "items": {"type": "string", "minLength": 1}},
        {
            "type": "object",
            "minProperties": 1,
            "additionalProperties": {"anyOf": [_ATTRIBUTES, {"type": "null"}]},
        },
    ]
}
AxisEntries = Annotated[tuple[AxisEntry, ...], BeforeValidator(_entries), WithJsonSchema(_AXIS)]
Names = Annotated[tuple[Name, ...], OneOrMany()]


class Match(Keys):
    """Combos: those of a policy (or several), of an environment (or several), or where both meet."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})

    policy: Names = Field(default=(), description="a policy of the grid, or a list of them")
    environment: Names = Field(default=(), description="an environment of the grid, or a list of them")


class ResourceKeys(Keys):
    gpus: GpuCount = Field(default=0, description="GPUs that a session is granted")


class ResultKeys(Keys):
    files: Annotated[tuple[Glob, ...], OneOrMany()] = Field(
        default=("**/*.jsonl",), description="patterns of the record files below {output_dir}, one JSON object a line"
    )
    success: Line = Field(default="success", description="the field that says whether an episode succeeded")
    episode: Line = Field(default="episode", description="the field that holds the episode's index")
    metrics: Annotated[tuple[Line, ...], OneOrMany()] = Field(
        default=(), description="the fields to report, in this order; without it every numeric field"
    )


class ProgressKeys(Keys):
    pattern: LogPattern | None = Field(
        default=None, description="regular expression (Python) with a group for what is done, perhaps one for the total"
    )
    counts_from: CountsFrom | None = Field(
        default=None, description="the number names the episode that begins, and the first one is called so"
    )
    silent: Flag = Field(default=False, description="whether the program prints nothing for long stretches")

    @model_validator(mode="after")
    def _needs_a_pattern(self) -> Self:
        if self.counts_from is not None and "pattern" not in self.model_fields_set:
            raise refusal(UserError("`counts_from` without a `pattern`", "which number is it about?"))
        return self


class LimitKeys(Keys):
    parallel: Positive | None = Field(default=None, description="sessions that run at once, at most")
    per_gpu: Positive | None = Field(default=None, description="sessions that share one GPU, at most")
    stagger: Seconds = Field(default=0.0, description="time between two starts, at least")
    attempts: Positive = Field(default=2, description="starts of one session, the first included, when it is lost")


class SyncKeys(Keys):
    """Files of this machine that are put on the host before the first session starts."""

    model_config = ConfigDict(json_schema_extra={"required": ["from", "to"]})

    source: Workdir | None = Field(
        default=None, alias="from", description="a folder or a file of this machine; relative to the grid file"
    )
    to: Root | None = Field(default=None, description="what it becomes on the host")
    exclude: Annotated[tuple[Pattern, ...], OneOrMany()] = Field(
        default=(), description="patterns of what stays here, besides .git, __pycache__, .venv, node_modules, *.pyc"
    )
    max_size: Size = Field(default=DEFAULT_SHIPPED, description="refuse to ship more than this, in all")


class SettingKeys(Keys):
    """What may differ from combo to combo."""

    episodes: Positive | None = Field(default=None, description="episodes (or steps) of every combo")
    first_episode: NotNegative = Field(default=0, description="index of the first episode")
    seed: NotNegative | None = Field(default=None, description="fills {seed}")
    unit: UnitWord = Field(default="episode", description="what is counted: episode, or step for training")
    command: Text | None = Field(default=None, description="the program and its arguments; no shell reads them")
    setup: Text = Field(default="", description="bash that runs before the command, in the same shell")
    workdir: Workdir | None = Field(default=None, description="folder in which setup and command run")
    variables: dict[VariableName, AsWritten] = Field(default={}, description="environment variables")
    resources: ResourceKeys = Field(default_factory=ResourceKeys, description="what one session needs")
    results: Annotated[ResultKeys | None, WrapValidator(_map_or_none), OrNone()] = Field(
        default_factory=ResultKeys, description="where the records are; `none` where the program leaves none"
    )
    progress: Annotated[ProgressKeys | None, WrapValidator(_map_or_none), OrNone()] = Field(
        default_factory=ProgressKeys, description="what the log tells before the records do; `none` where nothing"
    )


class Override(SettingKeys):
    """Settings for the combos that `when` matches."""

    model_config = ConfigDict(json_schema_extra={"required": ["when"], "minProperties": 2})

    when: Match = Field(default_factory=Match, description="the combos that it is for")


class GridFile(SettingKeys):
    """A grid file. Every key has a default, so that one mistake never hides another; grid.py asks for what must be."""

    model_config = ConfigDict(title="comborun grid", json_schema_extra={"required": ["policies", "environments"]})

    name: Name | None = Field(default=None, description="name of the grid and of its runs; else the file's")
    host: Host | None = Field(default=None, description="ssh host on which the sessions run; else this machine")
    root: Root = Field(default=DEFAULT_ROOT, description="folder on the host that holds the runs")
    policies: AxisEntries = Field(default=(), description="the policies: a list, or a map name -> attributes")
    environments: AxisEntries = Field(default=(), description="the environments: a list, or a map name -> attributes")
    include: tuple[Match, ...] = Field(default=(), description="combos that exclude took out and that come back")
    exclude: tuple[Match, ...] = Field(default=(), description="combos that are left out")
    overrides: tuple[Override, ...] = Field(default=(), description="settings for some combos; the last match wins")
    use_gpus: Annotated[tuple[NotNegative, ...], OneOrMany()] | None = Field(
        default=None, description="indexes of the GPUs that sessions may be granted; else all of the host"
    )
    limits: LimitKeys = Field(default_factory=LimitKeys, description="how much runs at once, and how often")
    after: Text | None = Field(default=None, description="a command that runs once on the host when all has ended")
    sync: tuple[SyncKeys, ...] = Field(default=(), description="files of yours that are put on the host first")
    replaces: Annotated[tuple[Line, ...], OneOrMany()] = Field(
        default=(), description="tmux and screen sessions of yours that are ended before the first start"
    )
    secrets: dict[VariableName, SecretSourceWord] = Field(
        default={}, description="environment variables whose values are taken from the host or the laptop at launch"
    )
    poll: PollSeconds = Field(default=DEFAULT_POLL, description="time between two looks of the monitor")


def keys_of(section: type[Keys]) -> tuple[str, ...]:
    """The keys of a map, as they stand in the file."""
    return tuple(field.alias or name for name, field in section.model_fields.items())


AXES = ("policies", "environments")
SECTIONS: dict[tuple[str, ...], type[Keys]] = {
    (): GridFile,
    ("include",): Match,
    ("exclude",): Match,
    ("overrides",): Override,
    ("overrides", "when"): Match,
    ("overrides", "resources"): ResourceKeys,
    ("overrides", "results"): ResultKeys,
    ("overrides", "progress"): ProgressKeys,
    ("resources",): ResourceKeys,
    ("results",): ResultKeys,
    ("progress",): ProgressKeys,
    ("limits",): LimitKeys,
    ("sync",): SyncKeys,
}
"""every map of a grid file whose keys are fixed"""
