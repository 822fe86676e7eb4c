"""What a report says of the run as a whole: sentences before the tables, and the methods. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from comborun.reporter.comparing.comparison import ALPHA, Sequential, Tested, limited, not_paired
from comborun.reporter.comparing.orders import Trend
from comborun.reporter.counting.quality import NAMED
from comborun.reporter.evidence.words import limits, say
from comborun.reporter.pages.answer import answer, compare_line
from comborun.reporter.summary import Summary
from comborun.reporter.text import duration, fraction, p_value, points
from comborun.rules.vocabulary import Completeness, Outcome
from comborun.text import several

LOOKS = 6
"""earlier looks that are told with their number of episodes"""


def sentences(summary: Summary) -> tuple[str, ...]:
    """Whether it is only a part of a run, the answer, then the state of the whole run, the most serious first."""
    return (
        *filter(None, (summary.part and f"{summary.part}.", answer(summary))),
        *_direction(summary),
        *_gates(summary),
        *_looks(summary),
        *_canary(summary),
        *(
            ()
            if summary.timing.over or not summary.by_run
            else ("Not all sessions had ended when this report was made.",)
        ),
        *_episodes(summary),
        *_early(summary),
        *(_trend(one, summary) for one in summary.trends),
        *_sessions(summary),
        *summary.differences,
        *_times(summary),
    )


def _direction(summary: Summary) -> Iterator[str]:
    """What is taken as better, if only the name of the metric says it."""
    metric = summary.metric
    if metric and metric.better and not metric.told and summary.by_numbers and len(summary.policies) > 1:
        yield (
            f"A higher {metric.name} is taken as better, by its name; `{compare_line(metric.name, 'lower')}` in the"
            " grid says otherwise."
        )


def _gates(summary: Summary) -> Iterator[str]:
    for gate in summary.gates:
        p = (
            f", p {p_value(gate.p)} (Holm over {several(len(summary.gates), 'condition')})"
            if gate.p is not None
            else ""
        )
        size = ""
        if gate.value is not None:
            size = f": {points(gate.value)} points" if gate.against else f": {fraction(gate.value)} %"
        word = "shown" if gate.holds else "NOT shown"
        yield f"Condition {word}: {gate.condition}{size}{p}{gate.why and f' ({gate.why})'}.{limits(gate.facts)}"


def _looks(summary: Summary) -> Iterator[str]:
    if earlier := summary.looks[:-1]:
        counts = [*map(str, earlier)] if len(earlier) <= LOOKS else [str(earlier[0]), "...", str(earlier[-1])]
        what = "episodes" if summary.by_numbers else "completed episodes"
        yield (
            f"This is look {len(earlier) + 1} at a folder that grows: earlier reports here had {', '.join(counts)}"
            f" {what}. Each look errs up to 5 % of the time by itself, together they err more often; the number of"
            " episodes must not depend on what a look shows. `stop_early` in a grid allows looks."
        )


def _canary(summary: Summary) -> Iterator[str]:
    found = summary.canary
    if found is None or not found.combos:
        return
    compared = sum(combo.compared for combo in found.combos)
    if found.differing:
        yield (
            f"Warning: of {several(compared, 'episode')} that {'was' if compared == 1 else 'were'} run alone once more,"
            f" some went differently in {len(found.differing)} of {several(len(found.combos), 'combo')}: the program is"
            " not repeatable, or parallel sessions affect each other's results."
        )
    elif compared:
        yield f"{several(compared, 'episode')} run alone once more went the same."


def _episodes(summary: Summary) -> Iterator[str]:
    counted = [combo.counts for combo in summary.combos if combo.counts]
    counts = summary.totals
    if not counted:
        return
    if not summary.planned:
        errored = f" and {several(counts.errored, 'errored one')}" if counts.errored else ""
        held = several(counts.completed, "completed episode")
        if summary.by_numbers:
            held = f"{several(counts.measured, 'episode')} with numbers and no verdict"
        yield f"{held}{errored} of {several(len(counted), 'combo')}; no plan says how many there should be."
        return
    whole = sum(one.completeness is Completeness.COMPLETE for one in counted)
    among = "" if len(counted) == len(summary.combos) else " counted in episodes"
    state = f"{whole} of {several(len(counted), 'combo')}{among} {'is' if 1 in (whole, len(counted)) else 'are'}"
    if whole == len(counted) > 1:
        state = f"All {len(counted)} combos{among} are"
    short = [f"{count} {word}" for count, word in ((counts.errored, "errored"), (counts.missing, "missing")) if count]
    rest = f" ({', '.join(short)})" if short else ""
    held = f"{counts.completed} of {counts.planned} planned episodes have a verdict"
    if counts.measured:
        judged = f", {counts.completed} have a verdict" if counts.completed else ""
        held = f"{counts.measured} of {counts.planned} planned episodes have numbers alone, as the grid asks{judged}"
    yield f"{state} complete: {held}{rest}."


def _early(summary: Summary) -> Iterator[str]:
    tested = (*summary.comparisons.all, *summary.comparisons.mean_differences)
    found = [one.sequential for one in tested if one.sequential and not one.so_far]
    if found:
        spare, planned = sum(combo.not_needed for combo in summary.combos), summary.totals.planned
        yield (
            f"{sum(one.stopped_early for one in found)} of {several(len(found), 'comparison')} over before the last"
            f" pair of episodes; {spare} of the grid's {spare + planned} episodes were not needed and are planned no"
            " more."
        )


def _trend(found: Trend, summary: Summary) -> str:
    """The best checkpoint, with a caution about choosing it."""
    best, environments, number = found.best, len(found.environments), several(len(found.checkpoints), "checkpoint")
    low, high = map(fraction, best.interval)
    over = f", the mean of {environments} environments" if environments > 1 else ""
    again = "" if found.measured_again is None else fraction(found.measured_again)
    alike = _not_told_apart(found, summary)
    undecided = f", not decided from {_named(alike)}" if alike else ""
    equal = [one.policy for one in found.checkpoints if one.rate == best.rate and one is not best]
    if len(equal) + 1 == len(found.checkpoints) > 1:
        within = f" [{low}, {high}]" if len({one.interval for one in found.checkpoints}) == 1 else ""
        return f"The observed rates of {number} are equal: {fraction(best.rate)} %{within}{over}."
    stale = [one for one in (best.policy, *equal) if one in found.written_over]
    former = f" The training wrote {_named(stale)} again: this rate is of the former content." if stale else ""
    also = f" (and so {'is' if len(equal) == 1 else 'are'} {_named(equal)})" if equal else ""
    return (
        f"The {'highest observed' if alike else 'best'} of {number} is"
        f" {best.policy}{also}: {fraction(best.rate)} % [{low}, {high}]{over}{undecided}. It was chosen for its rate,"
        f" which therefore leans upwards{again and f'; measured on episodes that did not choose it: {again} %'}."
        f"{former}"
    )


def _not_told_apart(found: Trend, summary: Summary) -> list[str]:
    """The checkpoints that the best one does not beat by a decided comparison."""
    best, compared = found.best.policy, summary.comparisons
    within = (one for one in compared.all if one.environment == found.environments[0])
    pairs: Iterable[Tested] = compared.overall if len(found.environments) > 1 else within
    beaten = {one.behind for one in pairs if one.better == best}
    return [one.policy for one in found.checkpoints if one.policy not in {best, *beaten}]


def _named(policies: Sequence[str]) -> str:
    """`a, b and c`; of many only the first ones."""
    shown = [*policies[:NAMED], *([f"{len(policies) - NAMED} more"] if len(policies) > NAMED else ())]
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def _sessions(summary: Summary) -> Iterator[str]:
    """Outcomes other than success, and training, which has nothing but an outcome."""
    others = (combo.ending.words for combo in summary.combos if combo.ending.outcome is not Outcome.SUCCEEDED)
    bad = [f"{count} {words}" for words, count in Counter(others).items()]
    if summary.by_run and bad:
        yield f"Outcomes other than succeeded: {', '.join(bad)}."
    if summary.trainings and not summary.by_run and not summary.combos:
        read = "is read as a training" if len(summary.trainings) == 1 else f"holds {len(summary.trainings)} trainings"
        yield f"{summary.run} {read}: curves and checkpoints as the program wrote them, no rate and no outcome."
    if steps := sum(combo.unit == "step" for combo in summary.combos):
        shown = "outcome, duration, curves and checkpoints" if summary.trainings else "outcome and duration"
        yield f"{several(steps, 'combo')} counted in steps: {shown}, no rate."


def _times(summary: Summary) -> Iterator[str]:
    timing = summary.timing
    if timing.makespan is not None:
        known = timing.sequential is not None
        total = f"; the session times add up to {duration(timing.sequential)}" if known else ""
        yield f"From the first start to the last end: {duration(timing.makespan)}{total}."


# -- methods ----------------------------------------------------------------------------------------------------------


def methods(summary: Summary) -> str:
    """Ready to paste: only about what this report holds."""
    counting = (
        "An episode counts at most once: its record of the lowest attempt with a verdict, whatever the verdict; the"
        " first such line within an attempt. Completed episodes have a verdict, success or failure. Errored ones ran,"
        " but their program gave none; missing ones were planned and left no record. Neither enters the rate."
    )
    if summary.by_numbers:
        counting = (
            "An episode counts at most once: its record of the lowest attempt; the first such line within an attempt."
            " Episodes have numbers and no verdict. Errored ones ran without a value; missing ones were planned and"
            " left no record."
        )
    if not any(combo.counts for combo in summary.combos):
        counting = ""
    if summary.trainings:
        counting += (
            " Trainings are shown and not compared: values are those that programs wrote, the last and the highest one,"
            " and a single training says nothing of the spread between trainings."
        )
    outcomes = "A session's outcome follows from its records, not from its exit code." if summary.by_run else ""
    return " ".join(filter(None, (counting.strip(), *_comparisons(summary), *_graded(summary), outcomes)))


def _comparisons(summary: Summary) -> Iterator[str]:
    if any(combo.rate for combo in summary.combos) and not summary.by_numbers:
        yield (
            "Intervals of success rates are exact binomial (Clopper-Pearson) at 95 %, each for its combo alone and"
            " assuming independent episodes."
        )
    found = summary.comparisons.all
    yield from _betting(summary)
    if not found:
        if not summary.comparisons.mean_differences:
            yield "No policies were compared."
        return
    yield from _within(summary)
    if overall := summary.comparisons.overall:
        yield (
            f"{several(len(overall), 'overall comparison')} of mean rates, each environment with the same weight: a"
            " randomization test stratified by environment and a t interval (Agresti-Coull variances). One half of the"
            " error belongs here, the other to comparisons within environments (weighted Holm). Ranks are those that"
            " this leaves open for all policies at once."
        )
    if margins := summary.comparisons.not_worse:
        yield (
            f"That a policy is not worse than another by {100 * margins[0].margin:g} points is tested in the same"
            " family, in both directions: by the limits of Clopper-Pearson in one environment (Zou-Donner), by a t test"
            " over several; equivalent means both directions."
        )
    if facts := limited(found):
        yield f"Limits of the comparisons: {'; '.join(map(say, facts))}."
    if any(combo.rate and combo.rate.starts for combo in summary.combos):
        yield "Where episodes started from the same seed or state, each start counts once, at its mean."
    if any(combo.rate and combo.rate.runs for combo in summary.combos):
        yield "Intervals of rates of several runs hold for these runs: the spread between runs is in comparisons alone."
    yield _decided(summary, "errored, missing or contradictory episode")


def _decided(summary: Summary, unknown: str) -> str:
    return (
        f"p-values are two-sided and adjusted by Holm over the family of {summary.comparisons.size}; a comparison is"
        f" decided at {ALPHA:g}, and claimed only if that also holds where every {unknown} counts against it. Intervals"
        " of differences are at 95 % for each alone. Policies that share a letter are not told apart, which does not"
        " mean that they are equal."
    )


def _within(summary: Summary) -> Iterator[str]:
    found = summary.comparisons.all
    sequential = [one.sequential for one in found if one.sequential]
    if sequential:
        yield _sequential(sequential, len(found), summary)
    if prevented := sum(bool(one.prevented) and not one.so_far for one in found):
        yield (
            f"{_share(prevented, len(found))} of policies {'was' if prevented == 1 else 'were'} planned to be tested"
            " after every pair of episodes, and could not be, for the reasons under data quality: nothing stopped early"
            f" for {'it' if prevented == 1 else 'them'}, and all episodes count."
        )
    paired = sum(one.paired for one in found) - len(sequential)
    if paired:
        yield (
            f"{_share(paired, len(found))} of policies used the episodes that both completed, paired because the"
            " records show equal seeds or initial states: exact McNemar test, Zou-Donner interval of the difference."
        )
    if unpaired := len(found) - paired - len(sequential):
        yield (
            f"{_share(unpaired, len(found))} of policies took the episodes as independent: Barnard's test,"
            f" Newcombe interval of the difference. {not_paired(found)}"
        )


def _betting(summary: Summary) -> Iterator[str]:
    found = [one for one in summary.comparisons.mean_differences if one.sequential]
    if found:
        most = max(one.sequential.n_max for one in found if one.sequential)
        yield (
            f"{several(len(found), 'comparison')} of mean {found[0].metric} (from 0 to 1) after every pair of episodes,"
            f" in the order of their index, at most {most} pairs, by betting (Waudby-Smith and Ramdas 2024, diversified"
            f" Kelly bets); {found[0].level:g} two-sided is shared equally among"
            f" {several(summary.comparisons.size, 'comparison')}, fixed before the first episode. Test and interval"
            " hold whenever it ends; estimates after an early stop lean away from zero. An episode without a value"
            " counts as 0 or as 1, against the claim."
        )


def _sequential(planned: Sequence[Sequential], printed: int, summary: Summary) -> str:
    family, so_far = summary.comparisons.size, any(one.so_far for one in summary.comparisons.all)
    fixed = (
        "so that it holds however often one looks while the run lasts"
        if so_far
        else ("and all of this was fixed before the first episode")
    )
    return (
        f"{_share(len(planned), printed)} of policies {'was' if printed == 1 else 'were'} tested after every pair of"
        " episodes, in the order of their index, by a conditional alpha-spending McNemar test (CASM) of at most"
        f" {max(one.n_max for one in planned)} pairs with linear spending; {planned[0].alpha:g} two-sided is shared"
        f" equally among {several(family, 'comparison')}, {fixed}. Pairs are taken as independent of each other. p is"
        " the family's level where it decides; intervals are Zou-Donner at 97 %, which after a stop covers 95 %."
        " Estimates after an early stop lean away from zero. Episodes after a decision are kept, and not used in that"
        " comparison."
    )


def _share(some: int, total: int) -> str:
    if some == total:
        return "The comparison" if total == 1 else f"All {total} comparisons"
    return f"{some} of {total} comparisons"


def _graded(summary: Summary) -> Iterator[str]:
    if any(mean.interval for combo in summary.combos for mean in combo.metrics):
        yield (
            f"Metrics are means over {'' if summary.by_numbers else 'completed '}episodes with a 95 % t interval, and"
            " the 5th and 95th percentiles of the episodes."
        )
    if found := summary.comparisons.graded:
        yield (
            f"By {', '.join(dict.fromkeys(one.metric for one in found))} policies are compared"
            f"{' in the same family' * bool(summary.comparisons.all)}: of the same episodes who has more (exact sign"
            " test, Zou-Donner interval), else by the chance that an episode of one is above one of the other (the"
            " larger p of Brunner-Munzel and Mann-Whitney, Newcombe's interval). The interquartile mean is that of the"
            " middle half of the values. Means are compared by permutation, with t intervals."
        )
        if not summary.comparisons.all:
            yield _decided(summary, "episode without a value")
    if summary.kinds:
        yield (
            f"Failure kinds are compared as success rates are, with 5 % of their own (Holm over {len(summary.kinds)})."
        )
    if summary.strengths:
        yield (
            "Bradley-Terry strengths have simultaneous 95 % intervals (Bonferroni), apart from the family of the"
            " comparisons: either may err 5 % of the time."
        )
    if summary.trends:
        yield (
            "The band of checkpoints covers all of them at once (Bonferroni). The best one is measured again by"
            " choosing with four fifths of the episodes and counting the others, five times."
        )
    if any(combo.time_to_success for combo in summary.combos):
        yield "Time to success is cumulative incidence over all completed episodes: failures stay in the denominator."
    if any(mean.mean is not None for mean in summary.macro_means):
        yield (
            "Means over environments are unweighted, with the environments taken as fixed (t interval, Agresti-Coull"
            " variances); no mean is given where an environment is missing."
        )
