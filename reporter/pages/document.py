"""final_benchmark_report.json, and the schema that describes it, as tables of keys. Pure."""

from __future__ import annotations

import json
from dataclasses import replace
from operator import not_
from typing import TYPE_CHECKING

from comborun.reporter.counting.quality import COUNTED
from comborun.reporter.pages.keys import (
    COUNT,
    COUNTS,
    DIFFERENCE,
    FLAG,
    FOUR_DECIMALS,
    GAP,
    KIB,
    LIMITS,
    MOMENT,
    NAMES,
    NUMBER,
    OUTCOME,
    ROUNDED,
    SCALED,
    SECONDS,
    SHARE,
    SOME,
    TEN_DECIMALS,
    TEXT,
    Key,
    Shape,
    as_json,
    by_name,
    is_none,
    list_of,
    or_null,
    row,
    table,
)
from comborun.reporter.records.collector import SCHEMA_FILE

if TYPE_CHECKING:
    from collections.abc import Callable

    from comborun.reporter.counting.quality import Quality
    from comborun.reporter.summary import Summary

SCHEMA = 1

_NAMED = (Key("policy", TEXT, "As the grid names it"), Key("environment", TEXT, "As the grid names it"))


# -- combos -----------------------------------------------------------------------------------------------------------

_BALANCED = table(
    Key("success_rate", SHARE, of="rate.rate"),
    Key("interval", LIMITS, of="rate.interval"),
    Key("successes", COUNT, of="rate.successes"),
    Key("n", COUNT, of="rate.n"),
    Key("copies", COUNT),
    Key("each", COUNT),
)
_METRIC = table(
    Key("mean", NUMBER),
    Key("n", SOME),
    Key("interval", or_null(SCALED), "95 % interval of the mean"),
    Key("percentiles", or_null(SCALED), "5 % and 95 % of the episodes"),
)
_FAILURES = table(
    Key("field", or_null(TEXT), "The field of the records that says it"),
    Key("kinds", by_name(COUNT), of="counts"),
    Key("other", COUNT, "Of less frequent kinds"),
    Key("untold", COUNT, "Without a kind"),
)
_TIME_TO_SUCCESS = table(
    Key("field", TEXT),
    Key("unit", TEXT),
    Key("median", or_null(NUMBER), of="curve.median"),
    Key("untimed", COUNT, "Successes without a time"),
)
COMBO = (
    *_NAMED,
    Key("unit", Shape({"enum": ["episode", "step"]}), "What is counted"),
    Key("planned", COUNT, "completed + errored + missing + measured"),
    Key("completed", or_null(COUNT), "Episodes with a verdict", "counts.completed"),
    Key("successes", or_null(COUNT), "Episodes that succeeded", "counts.successes"),
    Key("errored", or_null(COUNT), "Episodes that ran without a verdict", "counts.errored"),
    Key("missing", or_null(COUNT), "Planned episodes without a record", "counts.missing"),
    Key("measured", COUNT, "Episodes of `success: none`", "counts.measured", not_),
    Key("missing_episodes", or_null(TEXT), "Ranges of indexes, such as 3-7, 12", "counts.which_missing"),
    Key("success_rate", or_null(SHARE), "successes / completed", "rate.rate"),
    Key("interval", or_null(LIMITS), "Exact 95 % interval of success_rate", "rate.interval"),
    Key("success_rate_of_planned", or_null(SHARE), "As if all others had failed", "rate_of_planned.rate"),
    Key("interval_of_planned", or_null(LIMITS), "Exact 95 % interval of it", "rate_of_planned.interval"),
    Key("bounds", or_null(LIMITS), "Over all planned episodes, if all others had failed or succeeded"),
    Key("balanced", or_null(_BALANCED), "Over as many first episodes of each copy of the environment"),
    Key("letters", or_null(TEXT), "Policies that share one are not told apart", lambda one: one.letters or None),
    Key("retried", or_null(COUNT), "From a later attempt", lambda one: one.retried if one.counts else None),
    Key("outcome", OUTCOME, "How it ended; null before the end", "ending.outcome"),
    Key("cause", or_null(TEXT), "Why it ended", lambda one: one.ending.cause or None),
    Key("warnings", NAMES, "What else is important, a sentence each", "ending.warnings"),
    Key("attempts", COUNT, "Number of starts", "ending.attempts"),
    Key("seconds", SECONDS, "Time of the attempts whose records count", "ending.seconds"),
    Key("peak_memory_kib", KIB, "Most main memory of one attempt", "ending.peak_memory"),
    Key("metrics", by_name(_METRIC), "By name", lambda one: {mean.name: mean for mean in one.metrics}),
    Key("failures", or_null(_FAILURES), "Failed episodes by kind, of other kinds, and without one"),
    Key("time_to_success", or_null(_TIME_TO_SUCCESS), "Over all completed episodes"),
    Key("not_needed", COUNT, "Episodes left out after a decision, not among planned", left_out=not_),
)


# -- comparisons ------------------------------------------------------------------------------------------------------

_SIDES = (Key("a", TEXT, "One policy"), Key("b", TEXT, "The other policy"))
_DIFFERENCE = (
    Key("difference", DIFFERENCE, "a's rate minus b's"),
    Key("interval", LIMITS, "95 % interval of the difference"),
)
_P = (
    Key("p", ROUNDED, "Two-sided, never 0"),
    Key("p_holm", ROUNDED, "Corrected over the family"),
    Key("worst_p", ROUNDED, "p if every episode without a verdict counts against the better policy"),
    Key("worst_holm", ROUNDED, "worst_p, corrected over the family"),
)
_DECISION = (
    Key("only_completed", FLAG, "Only p_holm is at most .05"),
    Key("unknown", COUNTS, "Of a and of b: errored, missing and contradictory episodes"),
)
_BETTER = Key("better", or_null(TEXT), "The policy, if p_holm and worst_holm are at most .05")
_TESTED = (*_P, _BETTER, *_DECISION)
_MORE = (*_P, *_DECISION, Key("more", or_null(TEXT), "The policy with more of it, which need not be better", "better"))

_SEQUENTIAL = table(
    Key("n_max", SOME, "Most pairs"),
    Key("stopped_early", FLAG, of="stopped"),
    Key("alpha", NUMBER, "The family's level"),
)
_COMPARISON = table(
    Key("environment", TEXT, "Where the policies are compared"),
    *_SIDES,
    Key("successes_a", COUNT, "Of the episodes used", "rate_a.successes"),
    Key("n_a", SOME, "Episodes used", "rate_a.n"),
    Key("successes_b", COUNT, "Of the episodes used", "rate_b.successes"),
    Key("n_b", SOME, "Episodes used", "rate_b.n"),
    *_DIFFERENCE,
    Key("interval_method", TEXT, "How the interval is made"),
    Key("test", TEXT, "Which test gives p"),
    *_TESTED,
    Key("paired", FLAG, "The same episodes were compared"),
    Key("pairing", TEXT, "Why they are paired or not"),
    Key("so_far", FLAG, "More episodes may come"),
    Key("starts_a", COUNT, "Different starts, if some repeat", "rate_a.starts", not_),
    Key("starts_b", COUNT, "Different starts, if some repeat", "rate_b.starts", not_),
    Key("sequential", _SEQUENTIAL, "If it is tested after every pair", left_out=not_),
    Key("prevented", TEXT, "Why an early stop was not possible", left_out=not_),
)
_OVERALL = table(
    *_SIDES,
    Key("environments", COUNT, "That both have"),
    Key("mean_a", ROUNDED, "Mean success rate"),
    Key("mean_b", ROUNDED, "Mean success rate"),
    *_DIFFERENCE,
    *_TESTED,
    Key("paired_environments", COUNT, of="paired"),
    Key("range", LIMITS, "The smallest and the largest difference of an environment"),
    Key("heterogeneity", ROUNDED, "p of equal differences in all environments"),
)
_GRADED = table(
    Key("metric", TEXT),
    Key("environments", NAMES),
    *_SIDES,
    Key("n", COUNTS, "Values of a and of b"),
    Key("paired", FLAG, "The same episodes were compared"),
    Key("test", TEXT, "Which test gives p"),
    Key("interquartile_means", SCALED, of="middle"),
    Key("chance", ROUNDED, "That a has more, where equal values count half"),
    Key("interval", LIMITS, "95 % interval of the chance", "chance_interval"),
    *_MORE,
)
_KIND = table(
    Key("kind", TEXT),
    Key("environments", COUNT, "If over all", lambda one: getattr(one.found, "environments", None), is_none),
    Key("environment", TEXT, "If in one", lambda one: getattr(one.found, "environment", None), is_none),
    *(replace(key, of=f"found.{key.of or key.name}") for key in (*_SIDES, *_DIFFERENCE, *_MORE)),
)
_CHECKPOINT = table(
    Key("policy", TEXT),
    Key("step", NUMBER),
    Key("rate", ROUNDED, "Mean over the environments"),
    Key("interval", LIMITS, "All together cover all true rates at 95 %"),
)
_TREND = table(
    Key("environments", NAMES, "That all checkpoints have"),
    Key("episodes", COUNT),
    Key("checkpoints", list_of(_CHECKPOINT)),
    Key("best", TEXT, of="best.policy"),
    Key("measured_again", or_null(TEN_DECIMALS), "The rate of the best, on episodes that did not choose it"),
)
_DETECTABLE = table(
    Key("environment", TEXT),
    Key("n", COUNT, "Episodes of each policy"),
    Key("alone", GAP, "By one comparison alone", "gap"),
    Key("in_family", GAP, "By one of the family", "gap_in_family"),
)
_MEAN = table(
    Key("policy", TEXT),
    Key("environments", COUNT),
    Key("episodes", COUNT),
    Key("mean", or_null(SHARE), "Null if an environment is missing"),
    Key("interval", or_null(LIMITS)),
    Key("missing", NAMES, "Environments without an episode"),
    Key("partial", NAMES, "Environments in which some planned episodes have no verdict"),
    Key("rank", or_null(COUNTS), "The best and the worst that the overall comparisons leave open"),
    Key("early", NAMES, "Environments that stopped early", left_out=not_),
)
_STRENGTH = table(
    Key("policy", TEXT),
    Key("strength", replace(NUMBER, write=lambda value: round(value, 4)), of="value"),
    Key("interval", FOUR_DECIMALS, "All intervals together cover all true strengths at 95 %"),
)


# -- the whole document -----------------------------------------------------------------------------------------------

_TOTALS = table(
    Key("combos", COUNT, of=lambda summary: len(summary.combos)),
    *(Key(name, COUNT, of=f"counts.{name}") for name in ("planned", "completed", "successes", "errored", "missing")),
    Key("measured", COUNT, of="counts.measured", left_out=not_),
    Key("attempts", COUNT, of=lambda summary: sum(combo.ending.attempts for combo in summary.combos)),
)
_ATTEMPT = table(
    Key("session", TEXT, of="session.name"),
    *(replace(key, of=f"session.{key.name}") for key in _NAMED),
    Key("attempt", SOME, of="attempt.number"),
    Key("started", MOMENT),
    Key("ended", MOMENT, of="attempt.ended"),
    Key("outcome", OUTCOME, of="attempt.end.outcome"),
    Key("gpus", TEXT, of=lambda span: span.attempt.begin.gpus if span.attempt.begin else ""),
    Key("peak_memory_kib", KIB, of="attempt.end.peak_memory"),
)


def _count_of(name: str) -> Callable[[Quality], int]:
    return lambda quality: quality.counts[name]


_FINDING = table(Key("where", TEXT), Key("what", TEXT))
_QUALITY = table(
    *(Key(name, COUNT, words, _count_of(name)) for name, words in COUNTED.items()),
    Key("findings", list_of(_FINDING), "A sentence each, with its place"),
)
_EPISODES = list_of(COUNT)
_CANARY_COMBO = table(
    *_NAMED,
    Key("compared", COUNT),
    Key("verdicts", _EPISODES, "Episodes with another verdict"),
    Key("starts", _EPISODES, "Episodes with another start"),
    Key("seeds", _EPISODES, "Episodes with another seed"),
    Key("starts_compared", COUNT, "Episodes with a hash of their start in both"),
)
_CANARY = table(Key("run", TEXT), Key("combos", list_of(_CANARY_COMBO)))

REPORT = (
    Key("$schema", Shape({"const": SCHEMA_FILE}), "The file of this schema", lambda _: SCHEMA_FILE),
    Key("schema", Shape({"const": SCHEMA}), "Changes when the meaning of a key does", lambda _: SCHEMA),
    Key("run", TEXT, "The run's id; of a folder its name"),
    Key("grid", or_null(TEXT), "The grid's name; null of a folder"),
    Key("started", MOMENT, "First start, UTC by the host's clock", "timing.started"),
    Key("finished", MOMENT, "Last end, UTC by the host's clock", "timing.finished"),
    Key("makespan_seconds", SECONDS, "From the first start to the last end", "timing.makespan"),
    Key("sequential_seconds", SECONDS, "Sum of the sessions' times", "timing.sequential"),
    Key("bound_seconds", SECONDS, "The least time that any order in as many slots takes", "timing.bound"),
    Key("policies", NAMES, "In the plan's order"),
    Key("environments", NAMES, "In the plan's order"),
    Key("combos", list_of(table(*COMBO)), "Each policy in each environment"),
    Key("totals", _TOTALS, "Sums over the combos", lambda summary: summary),
    Key("family", COUNT, "Number of comparisons in Holm's correction", "comparisons.size"),
    Key("claims", NAMES, "What the comparisons decide, a sentence each", "claims.decided"),
    Key("undecided", NAMES, "What the comparisons leave open, a sentence each", "claims.left_open"),
    Key("comparisons", list_of(_COMPARISON), "Two policies in one environment", "comparisons.all"),
    Key("overall", list_of(_OVERALL), "Two policies over all environments that both have", "comparisons.overall"),
    Key("graded", list_of(_GRADED), "Two policies by a compared metric", "comparisons.graded", not_),
    Key("failure_kinds", list_of(_KIND), "Two policies by their shares of one kind of failure", "kinds", not_),
    Key("trends", list_of(_TREND), "Checkpoints by their steps, and the best of them", left_out=not_),
    Key("detectable", list_of(_DETECTABLE), "What is found 4 times in 5", "comparisons.environments"),
    Key("means", list_of(_MEAN), "The mean of a policy's success rates over environments", "macro_means"),
    Key("strengths", list_of(_STRENGTH), "With --ranking: log-strengths of Bradley-Terry", left_out=is_none),
    Key("attempts", list_of(_ATTEMPT), "Every start of a session", "timing.spans"),
    Key("quality", _QUALITY, "Counts of files and records, and what to know of them"),
    Key("canary", _CANARY, "The run that repeated first episodes alone", left_out=is_none),
    Key("provenance", by_name(TEXT), "From the run's manifest", lambda one: dict(sorted(one.provenance.items()))),
)


def report_json(summary: Summary) -> str:
    return as_json(row(REPORT, summary))


def report_schema() -> str:
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "final_benchmark_report.json of comborun",
        "description": (
            "Numbers that the records do not support are null. Keys may be added; `schema` changes when the meaning of"
            " one does."
        ),
        **table(*REPORT).schema,
    }
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"
