"""English for the facts of the evidence: a clause each, without a full stop, in the forms of comborun/words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from unicodedata import normalize

from comborun.reporter.evidence.context import LIMITS, LONGER, ContextFact, once
from comborun.reporter.evidence.fields import FieldFact
from comborun.reporter.evidence.repeats import AGAIN, COPY
from comborun.reporter.evidence.runs import RunFact
from comborun.reporter.evidence.sequence import DRIFT, IN_ORDER
from comborun.reporter.evidence.settings import SettingFact
from comborun.reporter.evidence.starts import StartFact
from comborun.reporter.evidence.states import ROUNDED
from comborun.reporter.evidence.units import UNITS
from comborun.reporter.text import number, points
from comborun.rules.facts import Fact
from comborun.text import several
from comborun.words import fill

LENGTH = 60
MOST = 6
"""runs, names and values that are named"""


def _short(text: str) -> str:
    return text if len(text) <= LENGTH else f"{text[: LENGTH - 1]}…"


def _named(texts: Sequence[str]) -> str:
    more = [f"and {len(texts) - MOST} more"] if len(texts) > MOST else []
    return ", ".join([*map(_short, texts[:MOST]), *more])


def _numbers(fact: Fact, key: str) -> list[float]:
    return [one for one in fact.fields.get(key, []) if isinstance(one, int | float)]


def _repeated(fact: Fact) -> str:
    mean, rate = (fact.number(key) for key in ("mean", "rate"))
    told = fill("{episodes} episodes have {starts:different start}, and each counts once", fact)
    if mean is None or rate is None:
        return told
    return f"{told}, at its mean: {fact.text('of')} then has {100 * mean:.1f} %, not {100 * rate:.1f} %"


def _joined(fact: Fact) -> str:
    runs, rates = fact.texts("runs"), _numbers(fact, "rates")
    if metric := fact.text("metric"):
        low, high = number(min(rates)), number(max(rates))
        spread = f"whose means lie between {low} and {high}" if low != high else f"each with a mean {metric} of {low}"
    else:
        low, high = (f"{100 * one:.1f}" for one in (min(rates), max(rates)))
        spread = f"whose rates lie between {low} and {high} %" if low != high else f"each with a rate of {low} %"
    return f"{fact.text('policy')} is {several(len(runs), 'run')} ({_named(runs)}), {spread}"


def _names_alike(fact: Fact) -> str:
    names = fact.texts("names")
    one = len({normalize("NFC", name) for name in names}) == 1
    letters = {"".join(filter(str.isalnum, normalize("NFKC", name).casefold())) for name in names}
    by = "how their signs are written" if one or len(letters) > 1 else "case, blanks or punctuation"
    return f"{fact.text('kind')} that differ only by {by} are taken as different: {', '.join(map(repr, names))}"


def _differs(fact: Fact) -> str:
    a, b = (_short(fact.text(key)) for key in "ab")
    values = f"{b} {when[1]} and {a} {when[0]}" if (when := fact.texts("when")) else f"{a} and {b}"
    return f"{fact.text('field')} is not the same: {values}"


def _copy(fact: Fact) -> str:
    fields = f"{apart} and the name" if (apart := ", ".join(map(_short, fact.texts("apart")))) else "the name"
    place = "in" if fact.text("kind") == "environment" else "of"
    both = f"the {{rows:row}} {place} {{of}} equal those {place} {{other}}"
    return f"{fill(both, fact)} in every field but {fields}, as if it were one evaluation under two names"


def _again(fact: Fact) -> str:
    apart = ", ".join(map(_short, fact.texts("apart")))
    both = f"the {{rows:row}} of {{of}} equal {'the first {rows}' if fact.count('more') else 'those'} of {{other}}"
    fields = f"every field{f' but {apart}' * bool(apart)}"
    return f"{fill(both, fact)} in {fields}: one evaluation, under two names, or the same results again?"


def _limits_differ(fact: Fact) -> str:
    pairs = [*zip(fact.texts("names"), _numbers(fact, "limits"), strict=True)]
    told = ", ".join(f"{_short(name)} at {limit:g}" for name, limit in pairs[:MOST])
    more = f", and {len(pairs) - MOST} more" if len(pairs) > MOST else ""
    return f"failures end at other lengths ({fact.text('field')}), so the time limit is not the same: {told}{more}"


def _counts(fact: Fact, words: str) -> list[str]:
    """How many episodes of each policy, in these words."""
    counts, totals, names = _numbers(fact, "episodes"), _numbers(fact, "of"), fact.texts("policies")
    return [words.format(k=k, n=n, name=name) for k, n, name in zip(counts, totals, names, strict=True)]


def _mix(fact: Fact) -> str:
    if fact.fields.get("in_common") is False:
        return f"{' and '.join(fact.texts('policies'))} have no value of {fact.text('field')} in common"
    above = fact.number("above")
    value = (_short(fact.text("value")) or "nothing") if above is None else f"above {above:g}"
    return f"{fact.text('field')} is not spread alike: {value} in {' and '.join(_counts(fact, '{k} of {n} of {name}'))}"


def _otherwise(fact: Fact) -> str:
    told = fill("{field} says otherwise in {episodes} of {of} episodes[ of {of_policy}]", fact)
    by_it = f": `results: {{success: {fact.text('field')}}}` in the grid counts by it"
    return told if fact.text("of_policy") else told + by_it


def _parts(fact: Fact) -> str:
    first, second = fact.texts("names")
    how, what = "run again", "leave out what is not to count"
    if fact.fields.get("apart") is True:
        how, what = "continued", "one name joins their episodes"
    return f"{second} may be {first}, {how}, and is taken as another policy: {what}"


def _other_words(fact: Fact) -> str:
    (a, b), (own, other) = fact.texts("policies"), fact.texts("kinds")
    return f"only {a} names {own!r} and only {b} names {other!r}: are these two words for one kind?"


def _drift(fact: Fact) -> str:
    first, second = (100 * one for one in fact.fields["rates"])
    return (
        f"success{fill('[ of {of_policy}]', fact)} {'falls' if first > second else 'rises'} with the order of episodes,"
        f" from {first:.1f} % in the first half to {second:.1f} % in the second: what changed it may make a difference"
        " between policies that did not run by turns"
    )


def _clusters(fact: Fact) -> str:
    told = fill("outcomes go with {field}: intervals and p are of these {values} values", fact)
    difference, half = (fact.number(key) for key in ("difference", "half"))
    if difference is None or half is None:
        return f"{told}, and say nothing of others"
    size = abs(difference)
    ends = f"{points(max(-1.0, size - half))}, {points(min(1.0, size + half))}"
    return f"{told}; for others, drawn like them, the difference is {points(size)} points [{ends}]"


def _nested(fact: Fact) -> str:
    field, both = fact.text("field"), " and ".join(fact.texts("policies"))
    counts = " and ".join(f"{one:g}" for one in _numbers(fact, "values"))
    none = f"{both} have no value of {field} in common ({counts} values)"
    few = f"few episodes of {both} have a {field} of both ({counts} values)"
    return f"{few if fact.fields.get('in_common') else none}: p and the interval take it as a random effect"


def _values(fact: Fact) -> str:
    """Of groups of episodes, whose names begin with the field."""
    return _named([one.removeprefix(f"{fact.text('field')} ") for one in fact.texts("values")])


def _one_each(fact: Fact) -> str:
    each = f"{' and '.join(fact.texts('policies'))} have one {fact.text('field')} each, not the same ({_values(fact)})"
    return f"{each}, so nothing tells the policies from it, and no p is computed"


def _compared_within(fact: Fact) -> str:
    values, field = fact.texts("values"), fact.text("field")
    which = f"the {len(values)} values of {field} that both have ({_values(fact)})" if len(values) > 1 else values[0]
    counts = _counts(fact, "{k} of {n} episodes of {name}") if fact.fields.get("episodes") else []
    left = [words for words in counts if not words.startswith("0 of ")]
    return f"compared within {which}{', without ' * bool(left)}{' and '.join(left)}"


_WORDS: Mapping[str, str | Callable[[Fact], str]] = {
    # Starts
    StartFact.RUN_SEEDS: "each of {seeds} seeds is shared by at least {fewest} episodes in a row that differ: taken as"
    " the seeds of runs, which say nothing of how an episode started",
    StartFact.RUN_OR_START: "each of {seeds} seeds is shared by at least {fewest} episodes in a row that differ:"
    " records cannot tell whether it is that of a run or of a start, so the seed is the unit, too"
    " (`results: {{seed: ignore}}` takes the episodes as independent, an `init_hash` tells the starts)",
    StartFact.REPEATED: _repeated,
    StartFact.REPLAYS: lambda fact: (
        f"{fact.count('episodes')} episodes are"
        f" {'one and the same' if fact.count('different') == 1 else fill('only {different} different ones', fact)}: the"
        " others equal them in every digit, whatever their seeds"
    ),
    StartFact.PARTS: "rows with one {field} end alike more often than by chance, as parts of one episode do: each"
    " {field} counts once, at its mean",
    StartFact.CONSTANT_HASH: "{field} never varies while seeds and results do, so it says nothing",
    ROUNDED: "{field} of {episodes:episode} is equal to that of others only to within rounding (1e-6 of its numbers):"
    " taken as the same start",
    StartFact.ONE_SIDED_HASH: lambda fact: (
        fill("only one of both has {field} in {episodes} of {common} common episodes, so it was not compared", fact)
        + " there" * (fact.count("episodes") < fact.count("common"))
    ),
    StartFact.UNKNOWN_STARTS: "{episodes} of {common} common episodes do not say how they started: left out, and"
    " counted against the better policy as if without a verdict",
    StartFact.BY_SEED: "{common} episodes were paired by equal starts under other indexes",
    StartFact.ALONE: lambda fact: fill(
        f"{{episodes}} of {{completed}} episodes of {{of}} {'has' if fact.count('episodes') == 1 else 'have'} no"
        " partner with the same start: left out",
        fact,
    ),
    # Fields
    FieldFact.IDENTIFIERS: lambda fact: (
        f"{', '.join(fact.texts('fields'))}: by name or values these number things and measure nothing, so they are not"
        " averaged; `results: {metrics: [...]}` in the grid averages what it names"
    ),
    FieldFact.NO_VALUE: lambda fact: fill(
        "{field} is {value:g} in {episodes} of {of} episodes,"
        f" {'while no other value is negative' if fact.number('value') == -1 else 'apart from all other values'}: taken"
        ' as "no value", and left out',
        fact,
    ),
    UNITS: lambda fact: (
        f"{fact.text('field')} of {' and '.join(fact.texts('policies'))} in {_named(fact.texts('environments'))} is"
        f" about {fact.count('factor'):,} times that of {' and '.join(fact.texts('others'))}, as in another"
        " unit (m and mm, s and ms): not compared; write all in one unit"
    ),
    FieldFact.TEXTS: "{field} is text in {episodes:episode}, such as {value!r}, and a number in others: not averaged;"
    " write all with a decimal point",
    FieldFact.GRADED: "{field} lies between 0 and 1 and is not compared: `results: {{compare: {field}}}` in the grid"
    " compares policies by it, which may decide with fewer episodes than success does",
    FieldFact.RUNNING: "{field} is the {what} of {of}[ in the last {last} rows| so far, row by row], and no value of an"
    " episode: not averaged",
    FieldFact.GOES_ON: lambda fact: (
        fill("{field} goes on from row to row: it turns {turns} times, about {expected} times by chance", fact)
        + ", so each value leans on those before it, as a mean of the last ones, a clock or the heat of a motor does:"
        f" not averaged; `results: {{metrics: [{fact.text('field')}]}}` in the grid averages it"
    ),
    # Runs
    RunFact.JOINED: _joined,
    RunFact.RANDOM: "p and the interval take the run as a random effect",
    RunFact.ONE_SIDE: "{policy} has one run, taken to differ from others as much as those of {other} do: p and the"
    " interval take the run as a random effect",
    RunFact.ONE_EACH: lambda fact: (
        f"only one run of each policy is compared ({_named(fact.texts('runs'))}), so the spread between runs is in no"
        " interval"
    ),
    COPY: _copy,
    AGAIN: _again,
    # Conditions, settings and order
    LIMITS: _limits_differ,
    LONGER: "failures of {of} end at {limit:g} ({field}), and {other} has episodes of up to {longest:g}, so the time"
    " limit is not the same",
    ContextFact.VARIES: lambda fact: f"{fill('{field} varies[ in {policy}]', fact)}: {_named(fact.texts('values'))}",
    ContextFact.DIFFERS: _differs,
    ContextFact.ONE_SIDED: lambda fact: (
        f"only one of both tells {fact.text('field')} ({', '.join(map(_short, fact.texts('values')))})"
    ),
    ContextFact.SHARED: lambda fact: f"both have the same {fact.text('field')}, {_short(fact.text('value'))}",
    SettingFact.MIX: _mix,
    SettingFact.MARKED: "{field} is [{valid:if}false|true] in {episodes} of {of} episodes[ of {of_policy}], which count"
    " like the others",
    SettingFact.OTHERWISE: _otherwise,
    IN_ORDER: "equal verdicts[ of {of_policy}] follow one another: {stretches} stretches in {episodes} episodes, about"
    " {expected} by chance; intervals and p take episodes as independent, so they claim too much",
    DRIFT: _drift,
    SettingFact.HELPED: "{episodes} of {of} episodes[ of {of_policy}] have {field}, and count like the others",
    SettingFact.OTHER_VERDICT: lambda fact: (
        f"by {fact.text('field')} the difference is another one: {', '.join(_counts(fact, '{name} has {k} of {n}'))}"
    ),
    SettingFact.CLUSTERS: _clusters,
    SettingFact.NESTED: _nested,
    SettingFact.ALONE: _one_each,
    SettingFact.WITHIN: _compared_within,
    # Names
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
    return fill(_WORDS[fact.code], fact)


def limits(facts: Iterable[Fact]) -> str:
    """A sentence about what limits a claim, with a blank before it; empty without facts."""
    told = "; ".join(dict.fromkeys(map(say, once(facts))))
    return f" But {told}{'.' * (not told.endswith('?'))}" if told else ""
