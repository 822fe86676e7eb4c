"""final_benchmark_report.json, and the schema that describes it. Pure.

Both follow from the summary's classes: a key is a field, its form is the field's type, and its description the
docstring below the field. KEYS says which fields of a class the document shows, where it doesn't show all.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from enum import Enum
from functools import cache, partial
from operator import attrgetter
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from comborun.model.codec import field_docs
from comborun.reporter.comparing.comparison import Comparison, Overall
from comborun.reporter.comparing.family import EnvironmentComparisons
from comborun.reporter.comparing.graded import Graded, MeanDifference
from comborun.reporter.comparing.kinds import KindComparison
from comborun.reporter.comparing.margins import NotWorse
from comborun.reporter.comparing.nominal import Loss
from comborun.reporter.comparing.orders import Trend
from comborun.reporter.counting.combo import ComboSummary, MacroMean
from comborun.reporter.counting.ending import TimedAttempt
from comborun.reporter.counting.measures import Balanced, FailureKinds, Measure, MetricMean, TimeToSuccess
from comborun.reporter.counting.quality import COUNTED, DataFinding, Quality
from comborun.reporter.json_types import Pair, Shape, as_it_is, limits, pair_of
from comborun.reporter.pages.answer import answer
from comborun.reporter.records.collector import SCHEMA_FILE
from comborun.reporter.standing import Place, Standing, standing_of
from comborun.reporter.statistics.proportion import Proportion
from comborun.reporter.summary import Summary, Totals

SCHEMA = 1

_P = "p p_holm worst_p worst_holm"
_LEFT_OPEN = "only_completed unknown"
_FOUND = " ".join(f"{name}=found.{name}" for name in f"a b difference interval {_P} {_LEFT_OPEN}".split())
KEYS: Mapping[type, str] = {
    Summary: """
        run part? grid metric? started=timing.started finished=timing.finished makespan_seconds=timing.makespan
        sequential_seconds=timing.sequential bound_seconds=timing.bound policies environments combos totals
        family=comparisons.size claims=claims.decided undecided=claims.left_open
        comparisons=comparisons.all overall=comparisons.overall graded?=comparisons.graded
        mean_differences?=comparisons.mean_differences not_worse?=comparisons.not_worse
        losses? factors? gates? failure_kinds?=kinds
        trends? trainings? videos? detectable=comparisons.environments means=macro_means strengths? looks?
        attempts=timing.spans quality canary? provenance""",
    ComboSummary: """
        policy environment unit planned completed=counts.completed successes=counts.successes
        errored=counts.errored missing=counts.missing measured?=counts.measured missing_episodes=counts.which_missing
        success_rate=rate.rate interval=rate.interval at_least=rate.at_least
        success_rate_of_planned=rate_of_planned.rate interval_of_planned=rate_of_planned.interval
        bounds balanced letters not_paired? limits? leans retried outcome=ending.outcome cause=ending.cause
        warnings=ending.warnings attempts=ending.attempts seconds=ending.seconds peak_memory_kib=ending.peak_memory
        metrics=metrics_by_name failures time_to_success consistency? not_needed?""",
    Totals: "combos planned completed successes errored missing measured? attempts",
    Proportion: "successes n",
    Balanced: "success_rate=rate.rate interval=rate.interval successes=rate.successes n=rate.n copies each",
    MetricMean: "mean n only? starts? runs? interval percentiles",
    FailureKinds: "field kinds other untold",
    TimeToSuccess: "field unit median=curve.median untimed",
    Comparison: f"""
        environment a b successes_a=rate_a.successes n_a=rate_a.n successes_b=rate_b.successes n_b=rate_b.n
        difference interval interval_method test {_P} better {_LEFT_OPEN} worst_difference? paired pairing so_far
        starts_a?=rate_a.starts starts_b?=rate_b.starts findable? finds_nothing? sequential? prevented? facts?""",
    Overall: f"""
        a b environments mean_a mean_b difference interval {_P} better {_LEFT_OPEN}
        worst_difference? paired_environments=paired unpaired? range heterogeneity facts?""",
    Graded: f"""
        metric environments a b n paired unpaired? test interquartile_means=middle chance interval=chance_interval
        {_P} {_LEFT_OPEN} only_successes? more=better facts?""",
    Loss: f"""
        policy nominal environments rate_nominal rate difference interval {_P} decided only_completed""",
    MeanDifference: f"""
        metric environments a b n paired unpaired? test means difference=gap interval=limits {_P} {_LEFT_OPEN}
        more=better so_far? sequential? prevented? facts?""",
    NotWorse: f"a b margin environments difference interval {_P} shown=decided {_LEFT_OPEN} facts?",
    KindComparison: f"""
        kind environments?=found.environments environment?=found.environment
        {_FOUND} more=found.better""",
    Trend: "environments episodes checkpoints best=best.policy measured_again written_over?",
    EnvironmentComparisons: "environment n alone=gap in_family=gap_in_family",
    MacroMean: "policy environments episodes mean interval missing partial rank early?",
    Standing: "measure better environments places letters leaders last",
    Measure: "name better told",
    Place: "policy value interval",
    TimedAttempt: """
        session=session.name policy=session.policy environment=session.environment attempt=attempt.number started
        ended=attempt.ended outcome=attempt.outcome gpus=attempt.gpus peak_memory_kib=attempt.peak_memory""",
}
"""`key`, or `key=where.its.value.is`; a key with `?` is left out where its value is None or empty"""


def report_json(summary: Summary) -> str:
    found = standing_of(summary)
    standing = found and _standing_shape().write(found)
    head = {"$schema": SCHEMA_FILE, "schema": SCHEMA, "answer": answer(summary), "standing": standing}
    return as_json({**head, **shape_of(Summary).write(summary)})


def _standing_shape() -> Shape:
    return _or_null(shape_of(Standing))


def report_schema() -> str:
    found = shape_of(Summary).schema
    head = {
        "$schema": {"description": "The file of this schema", "const": SCHEMA_FILE},
        "schema": {"description": "Changes when the meaning of a key does", "const": SCHEMA},
        "answer": {"description": "Who leads and who is last, in one sentence", "type": "string"},
        "standing": {"description": Standing.__doc__, **_standing_shape().schema},
    }
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "final_benchmark_report.json of comborun",
        "description": (
            "Numbers that the records do not support are null. Keys may be added; `schema` changes when the meaning of"
            " one does."
        ),
        **found,
        "required": [*head, *found["required"]],
        "properties": {**head, **found["properties"]},
    }
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


_encoded = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


def as_json(document: Mapping[str, Any]) -> str:
    """A line for each key, and for each item of a list."""
    lines = (f" {_encoded(key)}: {_listed(value)}" for key, value in document.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _listed(value: object) -> str:
    if not isinstance(value, list | tuple) or not value:
        return _encoded(value)
    return "[\n  " + ",\n  ".join(map(_encoded, value)) + "\n ]"


# -- from types to shapes ---------------------------------------------------------------------------------------------

_COUNT = Shape({"type": "integer", "minimum": 0})
_NUMBER = Shape({"type": "number"})
_PLAIN = {str: Shape({"type": "string"}), bool: Shape({"type": "boolean"}), int: _COUNT, float: _NUMBER}


@cache
def shape_of(kind: Any) -> Shape:
    """How values of a type look in the document."""
    origin, parts = get_origin(kind), get_args(kind)
    if kind in _PLAIN:
        return _PLAIN[kind]
    if kind is Quality:
        return _quality()
    if origin is Annotated:
        return next(one for one in kind.__metadata__ if isinstance(one, Shape))
    if type(None) in parts:
        return _or_null(shape_of(parts[0]))
    if origin is Literal or (isinstance(kind, type) and issubclass(kind, Enum)):
        return Shape({"enum": [str(one) for one in parts or kind]})
    if kind == Pair:
        return pair_of(_NUMBER, limits)
    if origin is tuple and parts[-1] is not Ellipsis:
        return pair_of(shape_of(parts[0]))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        each = shape_of(parts[1])
        schema = {"type": "object", "additionalProperties": each.schema}
        return Shape(schema, lambda found: {name: each.write(value) for name, value in found.items()})
    if isinstance(origin, type) and issubclass(origin, Sequence):
        each = shape_of(parts[0])
        return Shape({"type": "array", "items": each.schema}, lambda found: [each.write(one) for one in found])
    return table(kind, KEYS.get(kind) or " ".join(kind.__dataclass_fields__))


def _or_null(shape: Shape) -> Shape:
    schema = dict(shape.schema)
    if "enum" in schema:
        schema["enum"] = [*schema["enum"], None]
    elif "null" not in schema["type"]:
        schema["type"] = [schema["type"], "null"]
    return Shape(schema, shape.write)


def _quality() -> Shape:
    findings = shape_of(tuple[DataFinding, ...])
    counts = {name: {"description": words, **_COUNT.schema} for name, words in COUNTED.items()}
    properties = {**counts, "findings": {"description": "A sentence each, with its place", **findings.schema}}
    schema = {"type": "object", "required": [*properties], "properties": properties}
    return Shape(schema, lambda quality: {**quality.counts, "findings": findings.write(quality.findings)})


def table(kind: type, words: str) -> Shape:
    """The shape of objects of a class, by its keys."""
    keys = [_Key(kind, word) for word in words.split()]
    schema = {
        "type": "object",
        "required": [key.name for key in keys if not key.left_out],
        "properties": {key.name: key.schema for key in keys},
    }

    # A large report has a hundred thousand values.
    each = [(key.name, key.value, None if key.shape.write is as_it_is else key.shape.write, key) for key in keys]

    def write(source: Any) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, value_of, shown, key in each:
            value = value_of(source)
            if value is None:
                if not key.left_out:
                    found[name] = None
            elif value or key.nullable or not key.left_out:
                found[name] = shown(value) if shown else value
        return found

    return Shape(schema, write)


class _Key:
    def __init__(self, kind: Any, word: str) -> None:
        name, _, path = word.partition("=")
        self.name = name.removesuffix("?")
        self.left_out = name.endswith("?")
        self.path = (path or self.name).split(".")
        hint, about, maybe_none = kind, "", False
        for step in self.path:
            owners = get_args(hint) or (hint,)  # of a union each of its types
            maybe_none = maybe_none or type(None) in owners
            found = [one for owner in owners if (one := _attribute(owner, step))]
            if not found:
                raise AttributeError(f"{kind.__name__} has no {path or self.name}")
            hint, about = found[0]
        self.nullable = type(None) in get_args(hint)
        self.shape = _or_null(shape_of(hint)) if maybe_none else shape_of(hint)
        self.schema = {**({"description": about} if about else {}), **self.shape.schema}
        self.value = self._behind if self.path[1:] else attrgetter(self.path[0])

    def _behind(self, source: Any) -> Any:
        for name in self.path:
            source = getattr(source, name, None)
        return source


_hints = cache(partial(get_type_hints, include_extras=True))


def _attribute(owner: type, name: str) -> tuple[Any, str] | None:
    """The type and the docstring of a field or a property; None if the class has none of this name."""
    if name in _hints(owner):
        known = (base for base in owner.__mro__ if base.__module__ != "builtins")
        docs = (field_docs(base.__module__).get((base.__name__, name)) for base in known)
        return _hints(owner)[name], next(filter(None, docs), "")
    found = getattr(owner, name, None)
    function = getattr(found, "fget", None) or getattr(found, "func", None)
    return (_hints(function)["return"], function.__doc__ or "") if function else None
