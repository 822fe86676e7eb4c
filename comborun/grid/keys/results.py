"""The keys `results` and `progress`: where a session's records are, and how its log shows progress."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Annotated, Any, Self

from pydantic import model_validator

from comborun.errors import UserError
from comborun.grid.keys.axes import AxisEntry
from comborun.grid.keys.shapes import ONE_OR_MANY, ONE_OR_MANY_MAPS, Keys, key
from comborun.grid.keys.values import (
    SCALAR,
    TEXT,
    Count,
    Flag,
    Glob,
    Line,
    LogPattern,
    OneOf,
    Reads,
    Schema,
    line_of,
    log_pattern,
    number_of,
    refusal,
    scalar_of,
    whole_of,
)
from comborun.grid.yaml_tree import Items, Map
from comborun.model.judging import compile_pattern, has_total
from comborun.rules.results.fields import LOG, OUTPUT, Field, ResultRules
from comborun.rules.results.formats import FORMATS, is_log
from comborun.text import did_you_mean, listed

_ORIGINS = (-1, 0, 1)


def _counts_from(tree: object) -> int:
    value = whole_of(tree, low=-1)
    if value not in _ORIGINS:
        hint = "0 or 1: the first episode's number when it begins; -1 if the log names ended episodes, from 0"
        raise UserError(f"programs don't count from {value}", hint)
    return value


def _field(key: str, **keys: Schema) -> Reads:
    """The field of the records for a key: its name, or a map with these keys."""

    def read(tree: object) -> Field:
        if isinstance(tree, Items) and key == "episode":
            return Field(key, _several(tree))
        if not isinstance(tree, Map):
            text = line_of(tree)
            limit = _LIMIT.fullmatch(text) if "at_least" in keys else None
            if limit:
                way = "at_least" if limit[2] == ">" else "at_most"
                hint = f"`success: {{field: {limit[1]}, {way}: {limit[3]}}}`, which includes {limit[3]}"
                raise UserError(f"`{text}` is a comparison, not the name of a field", hint)
            return Field(key, text)
        _check_keys(tree, known)
        fields: dict[str, Any] = {name: _READ.get(name, line_of)(value) for name, value in tree.items()}
        if fields.get("at_least", -math.inf) > fields.get("at_most", math.inf):
            raise UserError("no number is from `at_least` to `at_most`", "leave one out, or swap them")
        if "equals" in fields:
            fields["any_of"] = [*fields.get("any_of", ()), fields.pop("equals")]
        naming = {name: fields.pop(name) for name in ("attribute", "values") if name in fields}
        return _Naming(key, fields, **naming) if naming else Field(key, fields)

    known = ("field", *keys)
    full = {"type": "object", "additionalProperties": False, "properties": {"field": TEXT, **keys}, "minProperties": 1}
    several: list[Schema] = [{"type": "array", "items": TEXT, "minItems": 2}] if key == "episode" else []
    return Reads(read, {"anyOf": [TEXT, full, *several]})


def _check_keys(tree: Map, known: tuple[str, ...]) -> None:
    if unknown := [name for name in tree if name not in known]:
        hint = did_you_mean(unknown[0], known) or f"known here: {listed(known)}"
        raise UserError(f"unknown key `{unknown[0]}`", hint)


def _several(tree: Items) -> list[str]:
    names = [line_of(one) for one in tree]
    if len({*names}) < max(2, len(names)):
        raise UserError("`episode` as a list names several fields, each once", "such as [task, trial]")
    return names


class _Naming(Field):
    """A field of names whose accepted value depends on the combo."""

    __slots__ = ("attribute", "by_name")

    def __init__(
        self, key: str, value: object, attribute: str | None = None, values: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        super().__init__(key, value)
        self.attribute = attribute
        """of the policy or environment: rows hold its value"""
        self.by_name = values
        """what rows say instead of these names"""


_LIMIT = re.compile(r"([\w./-]+)\s*([<>])=?\s*(\S+)")


def _texts_of(tree: object) -> list[str]:
    if isinstance(tree, Items) and not len(tree):
        raise UserError("an empty list: nothing would be a success", "name the values, such as [solved, done]")
    return [scalar_of(one).text for one in tree] if isinstance(tree, Items) else [scalar_of(tree).text]


def _values_of(tree: object) -> dict[str, str]:
    if not isinstance(tree, Map):
        raise UserError("`values` is not a map", "name of the grid -> what the records say: `values: {mason: rough}`")
    return {name: scalar_of(value).text for name, value in tree.items()}


_READ: dict[str, Callable[[object], Any]] = {
    "at_least": number_of,
    "at_most": number_of,
    "any_of": _texts_of,
    "equals": lambda tree: scalar_of(tree).text,
    "from": whole_of,
    "values": _values_of,
}
_NUMBER: Schema = {"type": "number"}
_SAID: Schema = {"anyOf": [SCALAR, {"type": "array", "items": SCALAR, "minItems": 1}]}
_MAP: Schema = {"type": "object", "additionalProperties": SCALAR, "minProperties": 1}
SuccessField = Annotated[Field, _field("success", at_least=_NUMBER, at_most=_NUMBER, equals=SCALAR, any_of=_SAID)]
EpisodeField = Annotated[Field, _field("episode", **{"from": {"type": "integer", "minimum": 0}})]
PolicyField = Annotated[Field, _field("policy", attribute=TEXT, values=_MAP)]
EnvironmentField = Annotated[Field, _field("environment", attribute=TEXT, values=_MAP)]
SeedField = Annotated[Field, _field("seed")]
FormatWord = Annotated[str, OneOf("format", "docs/report.md lists them; without it each file is recognised", FORMATS)]
SourceWord = Annotated[str, OneOf("source of records", "`files` selects files below {output_dir}", (OUTPUT, LOG))]


def _record_pattern(tree: object) -> str:
    text = log_pattern(line_of(tree))
    if not re.compile(text).groupindex:
        hint = r"such as 'Episode (?P<episode>\d+): (?P<verdict>success|fail).* return (?P<return>\S+)'"
        raise UserError(f"`{text}` has no named group", hint)
    return text


HIGHER, LOWER = "higher", "lower"


class Compared(str):
    """The name of a metric, and which values of it are better; empty: the grid does not say."""

    better: str

    def __new__(cls, name: str, better: str = "") -> Self:
        made = super().__new__(cls, name)
        made.better = better
        return made


def _compared(tree: object) -> Compared:
    if not isinstance(tree, Map):
        return Compared(line_of(tree))
    _check_keys(tree, ("field", "better"))
    fields = {name: line_of(value) for name, value in tree.items()}
    if "field" not in fields:
        raise UserError("`compare` names no `field`", "such as `{field: cost, better: lower}`")
    if fields.get("better", HIGHER) not in (HIGHER, LOWER):
        raise UserError(f"`better: {fields['better']}` is neither higher nor lower", "write one of the two words")
    return Compared(fields["field"], fields.get("better", ""))


def _margin(tree: object) -> float:
    text = scalar_of(tree).text
    found = _POINTS.fullmatch(text)
    share = float(found[1]) / 100 if found else 0.0
    if not 0 < share < 1:
        raise UserError(f"`{text}` is no margin", "percentage points above 0 and below 100, such as `5 points`")
    return share


_POINTS = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(?:points?|%)")
Margin = Annotated[float, Reads(_margin, {"type": "string", "pattern": f"^{_POINTS.pattern}$"})]
ProgressPattern = Annotated[str, Reads(lambda tree: compile_pattern(line_of(tree)).pattern, TEXT)]
_COMPARED: Schema = {
    "type": "object",
    "additionalProperties": False,
    "properties": {"field": TEXT, "better": {"enum": [HIGHER, LOWER]}},
    "required": ["field"],
}
ComparedMetric = Annotated[Compared, Reads(_compared, {"anyOf": [TEXT, _COMPARED]})]
Globs = Annotated[tuple[Glob, ...], ONE_OR_MANY]


class ResultKeys(Keys):
    format: FormatWord = key("format of the record files; else it is recognised for each file", "")
    source: SourceWord = key("log, if the program only prints its results; else output", OUTPUT, alias="from")
    pattern: Annotated[str, Reads(_record_pattern, TEXT)] = key(
        "regular expression of log lines that are records; named groups are their fields, `verdict` a word", ""
    )
    files: Globs = key("patterns of the record files below {output_dir}, one JSON object a line", ("**/*.jsonl",))
    success: SuccessField = key(
        "the field of the verdict, perhaps with a test; `none`: there is none", Field("success")
    )
    episode: EpisodeField = key(
        "the field of the episode's index; `line`: rows are numbered in their order; a list: fields that tell it",
        Field("episode"),
    )
    policy: PolicyField = key(
        "the field or attribute that names the policy in rows; `ignore`: it is not checked", Field("policy")
    )
    environment: EnvironmentField = key("the same for the environment", Field("environment"))
    seed: SeedField = key("the field of an episode's seed; `ignore`: it is not read", Field("seed"))
    metrics: Annotated[tuple[Line, ...], ONE_OR_MANY] = key(
        "the fields to report, in this order; without it every numeric field", ()
    )
    compare: Annotated[tuple[ComparedMetric, ...], ONE_OR_MANY_MAPS] = key(
        "metrics by which policies are compared, too, in one family with their success rates; `{field: cost, better:"
        " lower}` says which values are better",
        (),
    )
    margin: Margin = key(
        "a difference of success rates that does not matter, such as `5 points`: claims of `not worse by more`", 0.0
    )
    nominal: Line = key("the environment that the others are compared with, for each policy", "")
    factors: Annotated[tuple[Line, ...], ONE_OR_MANY] = key(
        "fields that are set before an episode, such as a mass: does success go with them?", ()
    )
    errors: Annotated[tuple[LogPattern, ...], ONE_OR_MANY] = key(
        "regular expressions of log lines that tell of a caught error: the episode's verdict does not count", ()
    )
    videos: Globs = key("patterns of videos below {output_dir}; the report names them beside their episodes", ())

    @model_validator(mode="after")
    def _log_needs_no_files(self) -> Self:
        if self.pattern and self.source != LOG and not all(map(is_log, self.files)):
            hint = 'add `from: log`, or `files: "**/*.txt"`'
            raise refusal("`pattern` is for records in the log or in texts", hint)
        if self.source == LOG and "files" not in self.model_fields_set:
            return self.model_copy(update={"files": ()})
        return self

    @model_validator(mode="after")
    def _compares_what_is_reported(self) -> Self:
        for name in self.compare:
            if self.metrics and name not in self.metrics:
                hint = did_you_mean(name, self.metrics) or "add it to `metrics`"
                raise refusal(f"`compare` names `{name}`, and `metrics` does not", hint)
        return self


def rules_of(keys: ResultKeys | None) -> ResultRules:
    """The rules for results. Without the key `results` the exit code decides."""
    if keys is None:
        return ResultRules(files=())
    better = {word: tuple(str(one) for one in keys.compare if one.better == word) for word in (LOWER, HIGHER)}
    return ResultRules(**{**vars(keys), **better, "compare": tuple(map(str, keys.compare))})


def naming(field: Field, axis: AxisEntry) -> Field:
    """The field with a name, and its value for this policy or environment."""
    attribute = field.name if field.as_data() == field.name and field.name in axis.attributes else None
    values: Mapping[str, str] = {}
    if isinstance(field, _Naming):
        attribute, values = field.attribute, field.by_name
    if attribute is not None and attribute not in axis.attributes:
        raise UserError(f"{field.key} `{axis.name}` has no attribute `{attribute}`", "give each one, or name a field")
    named = axis.attributes[attribute] if attribute is not None else values.get(axis.name)
    name = field.name if isinstance(field, _Naming) or attribute is None else field.key
    return field if named is None else Field(field.key, {"field": name, "any_of": [named]})


class ProgressKeys(Keys):
    pattern: ProgressPattern | None = key(
        "regular expression (Python) with a group for the number done, and perhaps one for the total"
    )
    counts_from: Annotated[int, Reads(_counts_from, {"enum": list(_ORIGINS)})] | None = key(
        "set if the number names the episode that begins: the number of the first one"
    )
    each: Count | None = key("for a bar that starts again: episodes (or steps) that its total stands for")
    silent: Flag = key("whether the program prints nothing for long stretches", False)

    @model_validator(mode="after")
    def _needs_a_pattern(self) -> Self:
        if self.counts_from is not None and self.pattern is None:
            raise refusal("`counts_from` without a `pattern`", "add the pattern that finds the number")
        if self.each is None:
            return self
        if self.pattern is None:
            raise refusal("`each` without a `pattern`", "add the pattern of the bar that starts again")
        if not has_total(re.compile(self.pattern)):
            hint = r"such as '(\d+)/(\d+) \[': the total is what `each` episodes stand for"
            raise refusal(f"`each` needs a total, and `{self.pattern}` has no second group for one", hint)
        if self.counts_from is not None:
            hint = "leave one out: a bar that starts again counts what is done, from 0"
            raise refusal("`each` and `counts_from` contradict each other", hint)
        return self
