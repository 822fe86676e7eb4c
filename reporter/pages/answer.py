"""The first line of a report: who leads, and who is last. Names are not escaped. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import chain

from comborun.model.work import grouped
from comborun.reporter.comparing.comparison import Tested
from comborun.reporter.counting.combo import ComboSummary
from comborun.reporter.evidence.context import ContextFact, alike
from comborun.reporter.evidence.settings import SettingFact
from comborun.reporter.figures.labels import in_common
from comborun.reporter.standing import Standing, standing_of
from comborun.reporter.statistics.difference import FEWEST_UNPAIRED
from comborun.reporter.summary import Summary
from comborun.reporter.text import claim, fraction, per_cent, points_interval, with_interval, within
from comborun.text import several
from comborun.words.rows import flow

NAMED = 5
MANY = 8
"""most policies that lead or are last and are told so; of more only the highest one is told"""
LONG = 15
"""characters that all names share, from which on they are told once"""

SEAMS = "_-/. "
_LAST_WORD = re.compile(r"[^_\-/. ]+[_\-/. ]*$")


def answer(summary: Summary) -> str:
    """One sentence, or empty if no episode counts."""
    if names := summary.of_unknown_level:
        return f"Nothing says whether {listed(names)} are policies or environments, so they have no order and no mean."
    found = standing_of(summary)
    if found is None:
        return _no_verdict(summary)
    told = f"{_answer(summary, found)}{_doubt(summary, compared=bool(found.comparisons))}"
    start, middles, end = in_common(found.names) if len(found.names) > 1 else ("", (), "")
    if not all(re.search(r"[^\W\d_]", middle) for middle in middles) and (word := _LAST_WORD.search(start)):
        start, middles = start[: word.start()], (*(word[0] + middle for middle in middles),)  # a number says too little
    if len(start) + len(end) < LONG or not all(middles) or len({*middles}) < len(middles):
        return told
    for name, middle in sorted(zip(found.names, middles, strict=True), reverse=True):  # the longer of two alike first
        told = told.replace(name, middle.strip(SEAMS) or middle)
    ends = [f"{part} {word}" for part, word in ((start, "before"), (end, "after")) if part]
    return f"{told} Left out of each name: {', '.join(ends)} it."


def _answer(summary: Summary, found: Standing) -> str:
    if len(found.places) == 1:
        return _alone(summary, found)
    if not found.comparisons:
        return _not_overall(summary, found)
    words = _order(found) if found.won else _unjudged(found) if found.apart else _nothing_decided(found)
    so_far = "So far " if any(one.so_far for one in summary.comparisons.all) else ""
    return f"{so_far}{words}{_otherwise(summary, found)}{_unlike(found)}{_lacking(summary, found)}."


def _doubt(summary: Summary, *, compared: bool = True) -> str:
    """Sentences on what is taken for policies and environments, where nothing but names says it."""
    alike = (("policy", summary.policies_alike), ("environment", summary.environments_alike))
    told = [f" {listed(names)} may be one {kind}." for kind, names in alike if names and (compared or kind == "policy")]
    if summary.runs_of_one:
        told.append(f" {listed(summary.runs_of_one)} may be runs of one policy.")
    return "".join(told) or (" Only paths say that these are policies." if summary.only_paths else "")


def _no_verdict(summary: Summary) -> str:
    counts = summary.totals
    names = list(dict.fromkeys(mean.name for combo in summary.combos for mean in combo.metrics))
    if counts.measured and names and not counts.completed:
        return (
            f"Episodes have no verdict but numbers ({listed(names)}), and nobody says by which policies are compared:"
            f" `{compare_line(names[0], 'higher')}` in the grid does.{_doubt(summary)}"
        )
    if not counts.planned or counts.measured:
        return ""
    how = f"{counts.errored} errored" + (f", {counts.missing} missing" if counts.missing else "")
    line = "; `results: {success: none}` in the grid counts episodes that have numbers alone" if counts.errored else ""
    line = "; data quality says why" if summary.quality.findings else line
    return f"No episode has a verdict ({how}), so there is no success rate{line}."


def compare_line(metric: str, better: str) -> str:
    """What to write in the grid."""
    return f"results: {flow({'compare': {'field': metric, 'better': better}})}"


def _where(found: Standing) -> str:
    if found.environment:
        return f"{found.measure} in {found.environment}"
    meets = (
        "environments that each two share"
        if found.common < found.environments
        else f"{found.environments} environments"
    )
    return f"{'mean ' * found.by_rate}{found.measure} over {'the ' * (found.common < found.environments)}{meets}"


def _alone(summary: Summary, found: Standing) -> str:
    told = _alone_of(summary, found)
    counted = dict.fromkeys(combo.policy for combo in summary.combos if combo.counts and found.by_rate)
    others = [name for name in counted if name != found.places[0].policy]
    if not others:
        return told
    verb = "has" if len(others) == 1 else "have"
    return f"{told[:-1]}; {listed(others)} {verb} no verdict, so nothing is compared."


def _alone_of(summary: Summary, found: Standing) -> str:
    place, judged = found.places[0], [combo for combo in summary.combos if combo.rate and combo.rate.n]
    if not judged:
        values = (
            ""
            if place.value is None
            else f" of {with_interval(place.value, place.interval, place.runs)} ({place.counts})"
        )
        return f"{place.policy} has a mean {_where(found)}{values}; there is no other policy to compare it with."
    if found.environment and judged[0].rate:
        return f"{place.policy} succeeds in {found.environment} in {claim(judged[0].rate)} of episodes."
    rated = sorted(((one.rate.rate or 0.0, one) for one in judged if one.rate), key=lambda pair: pair[0])
    (low, worst), (high, best) = rated[0], rated[-1]
    spread = f"the lowest rate is in {worst.environment}, the highest in {best.environment}" if low < high else ""
    value = (
        f"has a mean success rate of {fraction(place.value)} % {per_cent(place.interval)}{within(place.runs)} over"
        f" {found.environments} environments"
        if place.value is not None
        else f"has no mean success rate: {place.counts}"
    )
    return f"{place.policy} {value}{spread and '; '}{spread}."


def _order(found: Standing) -> str:
    """`pi05, gr00t and pi0 lead and are not told apart; act is last`."""
    leaders, last, others, rivals = found.leaders, found.last, len(found.places) - 1, list[str]()
    where, near = _where(found), ""
    if len(found.places) == 2:
        if lead := _lead(found, *found.won[0]):
            return f"{leaders[0]} beats {last[0]} by {lead} ({where})"
        return f"{leaders[0]} beats {last[0]} by {'lower ' * (found.better == 'lower')}{where}"
    if len(leaders) + len(last) > MANY and (highest := _highest(found)):
        return highest
    if len(leaders) > 1:
        head = f"{listed(leaders)} lead and {_not_apart(found, leaders)}"
    elif sum(winner == leaders[0] for winner, _ in found.won) == others:
        head = f"{leaders[0]} beats {'both' if others == 2 else f'all {others}'} others"
        if lead := _lead(found, leaders[0], found.names[1]):
            near = f" the next ({found.names[1]}) by {lead}"
    else:
        rivals = [name for name in found.names if name != leaders[0] and (leaders[0], name) not in found.won]
        met = [name for name in rivals if {(leaders[0], name), (name, leaders[0])} & {*found.by_pair}]
        unmet = [name for name in rivals if name not in met]
        head = f"{leaders[0]} leads" + (f", but is not told apart from {listed(met)}" if met else "")
        head += f"{' and' if met else ', but'} was not compared with {listed(unmet)}" if unmet else ""
    if len(leaders) == 1 and len(last) == others:
        tail = f", which {_not_apart(found, last)}{near and ';'}{near}"
    else:
        head += near and f",{near}"
        tail = f"; {listed(last)} {'is last' if len(last) == 1 else f'are last and {_not_apart(found, last)}'}"
    unclear = [name for name in found.apart_from_none if name not in rivals]
    rest = f"; {listed(unclear)} {'is' if len(unclear) == 1 else 'are'} told apart from no other" if unclear else ""
    return f"{head}{tail}{rest} (by {'lower ' * (found.better == 'lower')}{where})"


def _lead(found: Standing, winner: str, loser: str) -> str:
    """`27.0 points [18.2, 35.5]`, by how much the rates differ; empty if metrics are compared."""
    one = found.by_pair.get((winner, loser)) or found.by_pair.get((loser, winner))
    if one is None or not found.by_rate:
        return ""
    low, high = one.interval if one.a == winner else (-one.interval[1], -one.interval[0])
    limits = per_cent((low, high)) if low >= 0 else points_interval((low, high))
    return f"{fraction(abs(one.difference))}{'†' * one.leans} points {limits}"


def _highest(found: Standing) -> str:
    """For many policies: the highest one, its distance to the next and to the lowest one, and how many it beats. Empty
    if it does not lead.
    """
    (best, second), worst, others = found.places[:2], found.places[-1], len(found.places) - 1
    next_one, lowest = (_lead(found, best.policy, one.policy) for one in (second, worst))
    beaten = sum(winner == best.policy for winner, _ in found.won)
    if not (next_one and lowest and beaten) or best.policy not in found.leaders or best.value is None:
        return ""
    told = "" if (best.policy, second.policy) in found.won else ", not told apart"
    if second.value == best.value:
        next_one = f"as high as the next one, {second.policy}{told}"
    else:
        next_one = f"{next_one} above the next one, {second.policy}{told}"
    highest = f"the highest {_where(found)}, {fraction(best.value)} % {per_cent(best.interval)}{within(best.runs)}"
    return (
        f"{best.policy} has {highest}, {next_one};"
        f" it beats {beaten} of {others} others, the last one, {worst.policy}, by {lowest}"
    )


def _unjudged(found: Standing) -> str:
    """If nobody says which values are better."""
    which = f"which is better is not said: `{compare_line(found.measure, 'higher')}` (or lower) in the grid says it"
    more, less = found.apart[0]
    if len(found.places) == 2:
        return f"{more} has more {_where(found)} than {less}; {which}"
    pairs = several(len(found.comparisons), "pair")
    return f"{len(found.apart)} of {pairs} of policies differ by {_where(found)}; {which}"


def _otherwise(summary: Summary, found: Standing) -> str:
    """Environments where a pair is decided against its order over all; any if nothing is decided over all of them."""
    if found.environment or not found.by_rate:
        return ""
    if not found.won and (decided := [one for one in summary.comparisons.all if one.decided]):
        if len(found.places) > 2:
            return f"; but some are in {listed(list(dict.fromkeys(one.environment for one in decided)))}"
        by_winner = grouped(decided, lambda one: one.ahead)
        told = [f"{name} is better in {listed([one.environment for one in some])}" for name, some in by_winner.items()]
        return f"; {', '.join(told)}"
    against = [one for one in summary.comparisons.all if one.decided and (one.behind, one.ahead) in found.won]
    if not against:
        return ""
    if len(found.places) == 2:
        return f"; {against[0].ahead} is better in {listed([one.environment for one in against])}"
    return f"; in {listed(list(dict.fromkeys(one.environment for one in against)))} some pairs go the other way"


def _unlike(found: Standing) -> str:
    """Conditions that differ between two policies if one of them is better, or nothing can be told for them."""
    alone = (fact.text("field") for one in found.comparisons for fact in one.facts if fact.code == SettingFact.ALONE)
    if names := sorted({*alone}):
        each = "each has its own" if len(found.places) == 2 else "some have their own"
        return f"; {each} {listed(names)}, and nothing tells the policies from it"
    codes = {ContextFact.DIFFERS, SettingFact.MIX, SettingFact.NESTED, SettingFact.OTHER_VERDICT}
    facts = (fact for one in found.comparisons if one.decided for fact in one.facts if fact.code in codes)
    if not (names := sorted({fact.text("field") for fact in facts})):
        return ""
    return f"; but {listed(names)} {'differs' if len(names) == 1 else 'differ'} between them"


def _not_apart(found: Standing, names: Sequence[str]) -> str:
    pairs = found.by_pair
    together = [(a, b) for a in names for b in names if (a, b) in pairs]
    return "are not told apart" if 2 * len(together) == len(names) * (len(names) - 1) else "were not all compared"


def _nothing_decided(found: Standing) -> str:
    best = [one.policy for one in found.places if one.value is not None and one.value == found.places[0].value]
    everyone = listed(found.names) if len(found.places) == 2 else f"The {len(found.places)} policies"
    verb = "are not told apart" if found.complete else "are not told apart where they meet"
    partly = sum(one.only_completed for one in found.comparisons)
    leaning = f"; {several(partly, 'difference')} would be decided by completed episodes alone" if partly else ""
    if len(best) == len(found.places):
        return f"{everyone} {verb}: all have the same {_where(found)}{leaning}"
    degree = "higher one" if len(found.places) == 2 else "highest one"
    degree = degree.replace("high", "low") if found.better == "lower" else degree
    degree = degree if found.by_rate else degree.replace("one", "mean")
    # A difference of common episodes, or of starts, can be none, or have the other sign than that of the rates.
    ahead = [one for one in found.comparisons if (one.a in best) is not (one.b in best)]
    against = found.by_rate and any(not one.difference or one.behind in best for one in ahead)
    highest = f"; {listed(best)} {'has' if len(best) == 1 else 'have'} the {degree}" if best and not against else ""
    return f"{everyone} {verb} by {_where(found)}{highest}{leaning}"


def _not_overall(summary: Summary, found: Standing) -> str:
    """If the number of episodes depends on the results, or no two policies share two environments."""
    everyone = several(len(found.places), "policy", "policies")
    compared = summary.comparisons
    by_rate = {group.environment: group.comparisons for group in compared.environments}
    within: Mapping[str, Sequence[Tested]] = by_rate if found.by_rate else compared.by_metric_within(found.measure)
    here = [*chain(*within.values())]
    by = "" if found.by_rate else f" by {'lower ' * (found.better == 'lower')}{found.measure}"
    if found.by_rate and summary.comparisons.too_many:
        return f"{everyone} make too many pairs, so that none is compared."
    if not here:
        counted = [
            one
            for one in summary.combos
            if (one.rate and one.rate.n if found.by_rate else any(mean.name == found.measure for mean in one.metrics))
        ]
        ran = grouped(counted, lambda one: one.environment)
        if all(len(own) == 1 for own in ran.values()):
            empty = [one for one in summary.combos if one not in counted]
            return _nowhere_together(found, {name: [one.policy for one in own] for name, own in ran.items()}, empty)
        few = f"without pairs of equal starts it takes {FEWEST_UNPAIRED} values of each"
        return f"{everyone} are not compared by {found.measure}: {few}, or one `seed` for the same start."
    so_far = "So far " if any(one.so_far for one in here) else ""
    decided = [(one.behind if found.better == "lower" else one.ahead, one) for one in here if one.decided]
    total = len(decided)
    if not total:
        return f"{so_far}{len(found.places)} policies are not told apart{by} in any environment."
    if not found.better:
        which = f"`{compare_line(found.measure, 'higher')}` (or lower) in the grid says which is better"
        return f"{so_far}{total} of {several(len(here), 'pair')} within environments differ{by}; {which}."
    wins = {name: sum(winner == name for winner, _ in decided) for name in found.names}
    if len(wins) == 2:
        (winner, won), (loser, lost) = sorted(wins.items(), key=lambda pair: -pair[1])
        if len(here) == 1:
            return f"{so_far}{winner} beats {loser}{by} in {next(iter(within))}, the only environment that is compared."
        but = f" and loses in {lost}" if lost else ""
        return f"{so_far}{winner} beats {loser}{by} in {won} of {len(here)} environments{but}."
    best = [name for name in found.names if wins[name] == max(wins.values())]
    most = f"{listed(best)} {'wins' if len(best) == 1 else 'win'} the most ({wins[best[0]]})"
    return f"{so_far}{total} of {several(len(here), 'comparison')}{by} within environments are decided; {most}."


def _nowhere_together(found: Standing, ran: Mapping[str, Sequence[str]], empty: Sequence[ComboSummary]) -> str:
    """Why no two policies are compared, and what would make them comparable. `ran`: by environment, the policies with
    episodes that count. `empty`: combos with none."""
    where = listed([f"{policies[0]} ran in {environment}" for environment, policies in ran.items()])
    # Names that look alike are shown in quotes.
    if spelled := [fact.texts("names") for fact in alike([one.strip("'") for one in ran], "environments")]:
        need = f"one spelling of {listed([*map(repr, spelled[0])])} would"
    elif here := [one for one in empty if one.environment in ran]:
        need = f"verdicts of {here[0].policy} in {here[0].environment} would"
    else:
        first, policies = next(iter(ran.items()))
        need = f"episodes of {next(name for name in found.names if name not in policies)} in {first} would"
    return (
        f"{several(len(found.places), 'policy', 'policies')} are not compared, since no two have completed episodes in"
        f" the same environment ({where}): {need} make them comparable."
    )


def _lacking(summary: Summary, found: Standing) -> str:
    if not found.by_rate:
        return ""
    counted = [combo for combo in summary.combos if combo.counts and combo.rate]
    empty = sum(not combo.rate.n for combo in counted if combo.rate)
    return (
        f"; {empty} of {several(len(counted), 'combo')} {'has' if empty == 1 else 'have'} no verdict" if empty else ""
    )


def listed(names: Sequence[str]) -> str:
    shown = [*names] if len(names) <= NAMED + 1 else [*names[:NAMED], f"{len(names) - NAMED} more"]
    return f"{', '.join(shown[:-1])} and {shown[-1]}" if len(shown) > 1 else shown[0]
