"""English for the facts of the evidence: a clause each, without a full stop."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from unicodedata import normalize

from comborun.reporter.evidence.context import ContextFact, once
from comborun.reporter.evidence.copies import AGAIN, COPY
from comborun.reporter.evidence.fields import FieldFact
from comborun.reporter.evidence.horizons import LIMITS, LONGER
from comborun.reporter.evidence.runs import RunFact
from comborun.reporter.evidence.sequence import DRIFT, IN_ORDER
from comborun.reporter.evidence.settings import SettingFact
from comborun.reporter.evidence.starts import StartFact
from comborun.reporter.evidence.states import ROUNDED
from comborun.reporter.text import number, points
from comborun.rules.facts import Fact
from comborun.text import several

LENGTH = 60
RUNS = 6
"""runs that are named"""


def _short(text: str) -> str:
    return text if len(text) <= LENGTH else f"{text[: LENGTH - 1]}…"


def _run_seeds(fact: Fact) -> str:
    return (
        f"each of {fact.count('seeds')} seeds is shared by at least {fact.count('fewest')} episodes in a row that"
        " differ: taken as the seeds of runs, which say nothing of how an episode started"
    )


def _run_or_start(fact: Fact) -> str:
    return (
        f"each of {fact.count('seeds')} seeds is shared by at least {fact.count('fewest')} episodes in a row that"
        " differ: records cannot tell whether it is that of a run or of a start, so the seed is the unit, too"
        " (`results: {seed: ignore}` takes the episodes as independent, an `init_hash` tells the starts)"
    )


def _repeated(fact: Fact) -> str:
    starts = several(fact.count("starts"), "different start")
    told = f"{fact.count('episodes')} episodes have {starts}, and each counts once"
    mean, rate = (fact.number(key) for key in ("mean", "rate"))
    if mean is None or rate is None:
        return told
    return f"{told}, at its mean: {fact.text('of')} then has {100 * mean:.1f} %, not {100 * rate:.1f} %"


def _replays(fact: Fact) -> str:
    different = (
        "are one and the same" if fact.count("different") == 1 else f"are only {fact.count('different')} different ones"
    )
    return f"{fact.count('episodes')} episodes {different}: the others equal them in every digit, whatever their seeds"


def _one_sided(fact: Fact) -> str:
    some = fact.count("episodes") < fact.count("common")
    return (
        f"only one of both has {fact.text('field')} in {fact.count('episodes')} of {fact.count('common')} common"
        f" episodes, so it was not compared{' there' * some}"
    )


def _not_told(fact: Fact) -> str:
    return (
        f"{fact.count('episodes')} of {fact.count('common')} common episodes do not say how they started: left out, and"
        " counted against the better policy as if without a verdict"
    )


def _named(runs: Sequence[str]) -> str:
    return ", ".join([*map(_short, runs[:RUNS]), *([f"and {len(runs) - RUNS} more"] if len(runs) > RUNS else [])])


def _joined(fact: Fact) -> str:
    rates = [one for one in fact.fields.get("rates", []) if isinstance(one, int | float)]
    runs = _named(fact.texts("runs"))
    if metric := fact.text("metric"):
        low, high = number(min(rates)), number(max(rates))
        spread = f"whose means lie between {low} and {high}" if low != high else f"each with a mean {metric} of {low}"
    else:
        low, high = (f"{100 * one:.1f}" for one in (min(rates), max(rates)))
        spread = f"whose rates lie between {low} and {high} %" if low != high else f"each with a rate of {low} %"
    return f"{fact.text('policy')} is {several(len(fact.texts('runs')), 'run')} ({runs}), {spread}"


def _one_each(fact: Fact) -> str:
    named = _named(fact.texts("runs"))
    return f"only one run of each policy is compared ({named}), so the spread between runs is in no interval"


def _names_alike(fact: Fact) -> str:
    names = ", ".join(repr(name) for name in fact.texts("names"))
    by = "case, blanks or punctuation"
    if len({normalize("NFC", name) for name in fact.texts("names")}) == 1:
        by = "how their signs are written"
    return f"{fact.text('kind')} that differ only by {by} are taken as different: {names}"


def _differs(fact: Fact) -> str:
    a, b = (_short(fact.text(key)) for key in "ab")
    if when := fact.texts("when"):
        return f"{fact.text('field')} is not the same: {b} {when[1]} and {a} {when[0]}"
    return f"{fact.text('field')} is not the same: {a} and {b}"


def _varies(fact: Fact) -> str:
    values = _named(fact.texts("values"))
    whose = f" in {fact.text('policy')}" if fact.text("policy") else ""
    return f"{fact.text('field')} varies{whose}: {values}"


def _copy(fact: Fact) -> str:
    kind, of, other, rows = (fact.text("kind"), fact.text("of"), fact.text("other"), several(fact.count("rows"), "row"))
    both = f"the {rows} of {of} equal those of {other}"
    if kind == "environment":
        both = f"the {rows} in {of} equal those in {other}"
    apart = ", ".join(map(_short, fact.texts("apart")))
    fields = f"{apart} and the name" if apart else "the name"
    return f"{both} in every field but {fields}, as if it were one evaluation under two names"


def _again(fact: Fact) -> str:
    apart = ", ".join(map(_short, fact.texts("apart")))
    first = f"the first {fact.count('rows')}" if fact.count("more") else "those"
    return (
        f"the {several(fact.count('rows'), 'row')} of {fact.text('of')} equal {first} of {fact.text('other')} in every"
        f" field{f' but {apart}' * bool(apart)}: one evaluation, under two names, or the same results again?"
    )


def _limits_differ(fact: Fact) -> str:
    limits = [one for one in fact.fields.get("limits", []) if isinstance(one, int | float)]
    pairs = [*zip(fact.texts("names"), limits, strict=True)]
    told = ", ".join(f"{_short(name)} at {limit:g}" for name, limit in pairs[:RUNS])
    more = f", and {len(pairs) - RUNS} more" if len(pairs) > RUNS else ""
    return f"failures end at other lengths ({fact.text('field')}), so the time limit is not the same: {told}{more}"


def _longer(fact: Fact) -> str:
    limit, longest = (fact.number(key) or 0.0 for key in ("limit", "longest"))
    return (
        f"failures of {fact.text('of')} end at {limit:g} ({fact.text('field')}), and {fact.text('other')} has episodes"
        f" of up to {longest:g}, so the time limit is not the same"
    )


def _mix(fact: Fact) -> str:
    counts, totals = ([one for one in fact.fields.get(key, []) if isinstance(one, int)] for key in ("episodes", "of"))
    a, b = (f"{k} of {n} of {name}" for k, n, name in zip(counts, totals, fact.texts("policies"), strict=True))
    above = fact.number("above")
    value = (_short(fact.text("value")) or "nothing") if above is None else f"above {above:g}"
    if fact.fields.get("in_common") is False:
        return f"{' and '.join(fact.texts('policies'))} have no value of {fact.text('field')} in common"
    return f"{fact.text('field')} is not spread alike: {value} in {a} and {b}"


def _other_verdict(fact: Fact) -> str:
    counts, totals = ([one for one in fact.fields.get(key, []) if isinstance(one, int)] for key in ("episodes", "of"))
    a, b = (f"{name} has {k} of {n}" for k, n, name in zip(counts, totals, fact.texts("policies"), strict=True))
    return f"by {fact.text('field')} the difference is another one: {a}, {b}"


def _helped(fact: Fact) -> str:
    whose = f" of {fact.text('of_policy')}" if fact.text("of_policy") else ""
    told = f"{fact.count('episodes')} of {fact.count('of')} episodes{whose} have {fact.text('field')}"
    return f"{told}, and count like the others"


def _marked(fact: Fact) -> str:
    whose = f" of {fact.text('of_policy')}" if fact.text("of_policy") else ""
    value = "false" if fact.fields.get("valid") is True else "true"
    return (
        f"{fact.text('field')} is {value} in {fact.count('episodes')} of {fact.count('of')} episodes{whose}, which"
        " count like the others"
    )


def _otherwise(fact: Fact) -> str:
    whose = f" of {fact.text('of_policy')}" if fact.text("of_policy") else ""
    way = "" if whose else f": `results: {{success: {fact.text('field')}}}` in the grid counts by it"
    return f"{fact.text('field')} says otherwise in {fact.count('episodes')} of {fact.count('of')} episodes{whose}{way}"


def _in_order(fact: Fact) -> str:
    whose = f" of {fact.text('of_policy')}" if fact.text("of_policy") else ""
    return (
        f"equal verdicts{whose} follow one another: {fact.count('stretches')} stretches in {fact.count('episodes')}"
        f" episodes, about {fact.count('expected')} by chance; intervals and p take episodes as independent, so they"
        " claim too much"
    )


def _parts(fact: Fact) -> str:
    first, second = fact.texts("names")
    if fact.fields.get("apart") is True:
        return f"{second} may be {first}, continued, and is taken as another policy: one name joins their episodes"
    return f"{second} may be {first}, run again, and is taken as another policy: leave out what is not to count"


def _other_words(fact: Fact) -> str:
    (a, b), (own, other) = fact.texts("policies"), fact.texts("kinds")
    return f"only {a} names {own!r} and only {b} names {other!r}: are these two words for one kind?"


def _drift(fact: Fact) -> str:
    whose = f" of {fact.text('of_policy')}" if fact.text("of_policy") else ""
    first, second = (100 * one for one in fact.fields["rates"])
    return (
        f"success{whose} {'falls' if first > second else 'rises'} with the order of episodes, from {first:.1f} % in the"
        f" first half to {second:.1f} % in the second: what changed it may make a difference between policies that did"
        " not run by turns"
    )


def _running(fact: Fact) -> str:
    whole = f"{fact.text('field')} is the {fact.text('what')} of {fact.text('of')}"
    rows = f" in the last {fact.count('last')} rows" if fact.count("last") else " so far, row by row"
    return f"{whole}{rows}, and no value of an episode: not averaged"


def _clusters(fact: Fact) -> str:
    told = f"outcomes go with {fact.text('field')}: intervals and p are of these {fact.count('values')} values"
    difference, half = (fact.number(key) for key in ("difference", "half"))
    if difference is None or half is None:
        return f"{told}, and say nothing of others"
    size = abs(difference)
    ends = f"{points(max(-1.0, size - half))}, {points(min(1.0, size + half))}"
    return f"{told}; for others, drawn like them, the difference is {points(size)} points [{ends}]"


def _no_value(fact: Fact) -> str:
    value = fact.fields.get("value")
    how = "while no other value is negative" if value == -1 else "apart from all other values"
    return (
        f"{fact.text('field')} is {value:g} in {fact.count('episodes')} of {fact.count('of')} episodes, {how}: taken as"
        ' "no value", and left out'
    )


_WORDS: Mapping[str, Callable[[Fact], str]] = {
    StartFact.RUN_SEEDS: _run_seeds,
    StartFact.RUN_OR_START: _run_or_start,
    StartFact.REPEATED: _repeated,
    StartFact.REPLAYS: _replays,
    StartFact.PARTS: lambda fact: (
        f"rows with one {fact.text('field')} end alike more often than by chance, as parts of one episode do: each"
        f" {fact.text('field')} counts once, at its mean"
    ),
    StartFact.CONSTANT_HASH: lambda fact: (
        f"{fact.text('field')} never varies while seeds and results do, so it says nothing"
    ),
    ROUNDED: lambda fact: (
        f"{fact.text('field')} of {several(fact.count('episodes'), 'episode')} is equal to that of others only to"
        " within rounding (1e-6 of its numbers): taken as the same start"
    ),
    StartFact.ONE_SIDED_HASH: _one_sided,
    StartFact.UNKNOWN_STARTS: _not_told,
    StartFact.BY_SEED: lambda fact: f"{fact.count('common')} episodes were paired by equal starts under other indexes",
    StartFact.ALONE: lambda fact: (
        f"{fact.count('episodes')} of {fact.count('completed')} episodes of {fact.text('of')}"
        f" {'has' if fact.count('episodes') == 1 else 'have'} no partner with the same start: left out"
    ),
    FieldFact.IDENTIFIERS: lambda fact: (
        f"{', '.join(fact.texts('fields'))}: by name or values these number things and measure nothing, so they are not"
        " averaged; `results: {metrics: [...]}` in the grid averages what it names"
    ),
    FieldFact.NO_VALUE: _no_value,
    FieldFact.TEXTS: lambda fact: (
        f"{fact.text('field')} is text in {several(fact.count('episodes'), 'episode')}, such as {fact.text('value')!r},"
        " and a number in others: not averaged; write all with a decimal point"
    ),
    FieldFact.GRADED: lambda fact: (
        f"{fact.text('field')} lies between 0 and 1 and is not compared: `results: {{compare: {fact.text('field')}}}`"
        " in the grid compares policies by it, which may decide with fewer episodes than success does"
    ),
    FieldFact.RUNNING: _running,
    FieldFact.GOES_ON: lambda fact: (
        f"{fact.text('field')} goes on from row to row: it turns {fact.count('turns')} times, about"
        f" {fact.count('expected')} times by chance, so each value leans on those before it, as a mean of the last"
        " ones, a clock or the heat of a motor does: not averaged;"
        f" `results: {{metrics: [{fact.text('field')}]}}` in the grid averages it"
    ),
    RunFact.JOINED: _joined,
    RunFact.RANDOM: lambda _: "p and the interval take the run as a random effect",
    RunFact.ONE_SIDE: lambda fact: (
        f"{fact.text('policy')} has one run, taken to differ from others as much as those of {fact.text('other')} do: p"
        " and the interval take the run as a random effect"
    ),
    RunFact.ONE_EACH: _one_each,
    COPY: _copy,
    AGAIN: _again,
    LIMITS: _limits_differ,
    LONGER: _longer,
    ContextFact.VARIES: _varies,
    ContextFact.DIFFERS: _differs,
    ContextFact.ONE_SIDED: lambda fact: (
        f"only one of both tells {fact.text('field')} ({', '.join(map(_short, fact.texts('values')))})"
    ),
    ContextFact.SHARED: lambda fact: f"both have the same {fact.text('field')}, {_short(fact.text('value'))}",
    SettingFact.MIX: _mix,
    SettingFact.MARKED: _marked,
    SettingFact.OTHERWISE: _otherwise,
    IN_ORDER: _in_order,
    DRIFT: _drift,
    SettingFact.HELPED: _helped,
    SettingFact.OTHER_VERDICT: _other_verdict,
    SettingFact.CLUSTERS: _clusters,
    SettingFact.NESTED: lambda fact: (
        f"both have no value of {fact.text('field')} in common, and outcomes may go with it: p and the interval"
        " take it as a random effect"
    ),
    ContextFact.NAMES_ALIKE: _names_alike,
    ContextFact.NAMES_OF_PARTS: _parts,
    ContextFact.OTHER_WORDS: _other_words,
    ContextFact.NAMES_OF_STEPS: lambda fact: (
        f"{_named(fact.texts('names'))} may be steps of a training, and are taken as environments: a mean over them is"
        " of no policy; a name of the policy with the step makes them checkpoints"
    ),
    ContextFact.NAMES_OF_RUNS: lambda fact: (
        f"{_named(fact.texts('names'))} may be runs of one {fact.text('kind') or 'policy'}, {fact.text('of')}, and are"
        " taken as different ones: one name and a field `train_seed`, or folders `seed0` and `seed1`, join them"
    ),
}


def say(fact: Fact) -> str:
    return _WORDS[fact.code](fact)


def limits(facts: Iterable[Fact]) -> str:
    """A sentence about what limits a claim, with a blank before it; empty without facts."""
    told = "; ".join(map(say, once(facts)))
    return f" But {told}{'.' * (not told.endswith('?'))}" if told else ""
