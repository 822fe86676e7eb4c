"""The content of a report, as values: every number in every format comes from here. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

from comborun.model.attempt import EpisodeRecord
from comborun.model.work import Combo, grouped, size
from comborun.reporter.basis import Basis, basis_of
from comborun.reporter.comparing.claims import Claims, claims, prevented, single_runs
from comborun.reporter.comparing.comparison import Tested, limited
from comborun.reporter.comparing.factors import Factor, without_levels
from comborun.reporter.comparing.family import MOST, Comparisons, compare, how_many
from comborun.reporter.comparing.graded import ByMetric, Graded, MeanDifference, compare_graded, scores
from comborun.reporter.comparing.kinds import KindComparison, compare_kinds, unlike_kinds
from comborun.reporter.comparing.limits import evidence
from comborun.reporter.comparing.margins import GateResult, check, parse_gate
from comborun.reporter.comparing.nominal import Loss
from comborun.reporter.comparing.orders import Strength, Trend, steps_of, strengths, trend_of
from comborun.reporter.comparing.sides import Arm
from comborun.reporter.comparing.stopping import as_run
from comborun.reporter.counting.combo import ComboData, ComboSummary, MacroMean, macro_means, summarize_combo
from comborun.reporter.counting.ending import RunTiming, timing
from comborun.reporter.counting.measures import Measure, time_field
from comborun.reporter.counting.quality import DataFinding, Quality, differences, quality
from comborun.reporter.counting.trainings import Training, training_findings, trainings
from comborun.reporter.evidence import words as evidence_words
from comborun.reporter.evidence.fields import FieldFact
from comborun.reporter.records.collected import Canary, Collected, SessionVideos
from comborun.reporter.records.levels import ONE_LEVEL
from comborun.reporter.shown_names import in_quotes, with_names
from comborun.reporter.statistics.difference import letters
from comborun.reporter.text import combo_name
from comborun.rules.facts import Fact
from comborun.rules.following import WRITTEN_OVER
from comborun.text import several
from comborun.words import say


@dataclass(frozen=True)
class GridAxes:
    """The axes of a table, the shorter one across."""

    columns: tuple[str, ...]
    rows: tuple[str, ...]
    policies_across: bool

    def combo(self, column: str, row: str) -> Combo:
        return (column, row) if self.policies_across else (row, column)


@dataclass(frozen=True)
class Totals:
    """Sums over the combos; of episodes, over those that are counted in episodes."""

    combos: int
    planned: int
    completed: int
    successes: int
    errored: int
    missing: int
    measured: int
    attempts: int


@dataclass(frozen=True)
class Summary:
    run: str
    """the run's id; of a folder its name"""
    grid: str | None
    """the grid's name; None of a folder"""
    planned: bool
    """whether a plan says which episodes there should be"""
    by_run: bool
    """whether it is of a run, which has sessions; a folder has only results"""
    metric: Measure | None
    """by which policies are ordered where no episode has a verdict, or where `stop_early` names it"""
    timing: RunTiming
    policies: tuple[str, ...]
    """in the plan's order"""
    environments: tuple[str, ...]
    """in the plan's order"""
    combos: tuple[ComboSummary, ...]
    """by environment, then by policy"""
    comparisons: Comparisons
    claims: Claims
    macro_means: tuple[MacroMean, ...]
    """the mean of a policy's success rates; empty where there is only one environment"""
    quality: Quality
    """counts of files and records, and what to know of them"""
    provenance: Mapping[str, str]
    """from the run's manifest, by name"""
    canary: Canary | None = None
    """the run that repeated first episodes alone"""
    differences: tuple[str, ...] = ()
    """sentences about what differed between the policies besides themselves"""
    kinds: tuple[KindComparison, ...] = ()
    """two policies by their shares of one kind of failure"""
    trends: tuple[Trend, ...] = ()
    """checkpoints by their steps, and the best of them"""
    part: str = ""
    """that it is of one of several hosts, and how to report the whole run"""
    looks: tuple[int, ...] = ()
    """of a folder that has been reported before and has grown: completed episodes at each report, this one last"""
    losses: tuple[Loss, ...] = ()
    """what each policy loses from the grid's nominal environment to the others"""
    factors: tuple[Factor, ...] = ()
    """whether success goes with what was set before the episodes"""
    gates: tuple[GateResult, ...] = ()
    """the conditions of --gate"""
    videos: tuple[SessionVideos, ...] = ()
    """of each session that should have some"""
    trainings: tuple[Training, ...] = ()
    """curves, evaluations and checkpoints of combos that are counted in steps"""
    of_unknown_level: tuple[str, ...] = ()
    """environments that may be policies, for paths alone name them"""
    only_paths: bool = False
    """whether only paths say which policies there are"""
    runs_of_one: tuple[str, ...] = ()
    """policies whose names differ by that of a run, the first such ones"""
    policies_alike: tuple[str, ...] = ()
    """policies whose names differ by their spelling, the first such ones"""
    environments_alike: tuple[str, ...] = ()
    strengths: tuple[Strength, ...] | None = None
    """with --ranking: log-strengths of Bradley-Terry"""

    @cached_property
    def by_numbers(self) -> bool:
        """Whether no episode has a verdict, and some have numbers."""
        return bool(self.totals.measured and not self.totals.completed)

    @cached_property
    def axes(self) -> GridAxes | None:
        """Of the combos that are counted in episodes; None without any."""
        combos = [combo for combo in self.combos if combo.counts]
        policies = tuple(name for name in self.policies if any(combo.policy == name for combo in combos))
        environments = tuple(name for name in self.environments if any(combo.environment == name for combo in combos))
        if len(policies) <= len(environments):
            return GridAxes(policies, environments, policies_across=True) if combos else None
        return GridAxes(environments, policies, policies_across=False)

    @cached_property
    def totals(self) -> Totals:
        """Sums over the combos."""
        counted = [combo.counts for combo in self.combos if combo.counts]
        names = ("planned", "completed", "successes", "errored", "missing", "measured")
        sums = {name: sum(getattr(counts, name) for counts in counted) for name in names}
        return Totals(len(self.combos), **sums, attempts=sum(combo.ending.attempts for combo in self.combos))


@dataclass(frozen=True)
class Report:
    """A summary and its episodes, in the order of its combos."""

    summary: Summary
    episodes: tuple[EpisodeRecord, ...]

    @property
    def shown(self) -> Report:
        """For people: with names in quotes that would look alike."""
        quoted = in_quotes(self.summary.policies, self.summary.environments)
        if not quoted:
            return self
        episodes = (
            replace(
                one,
                policy=quoted.get(one.policy, one.policy),
                environment=quoted.get(one.environment, one.environment),
            )
            for one in self.episodes
        )
        return Report(with_names(self.summary, quoted), tuple(episodes))


def summarize(collected: Collected, *, ranked: bool = False, gates: Sequence[str] = ()) -> Report:
    """All numbers of the report from what was collected; `ranked`: with Bradley-Terry strengths. `gates`: conditions to
    check."""
    basis = basis_of(collected)
    results, stopping = basis.results, basis.stopping
    comparisons, kinds, found_trends = _compared(basis)
    combos = tuple(_with_comparisons(_combos(basis), comparisons, basis.metric))
    lost, found_factors = basis.losses, basis.factors
    causes = {combo.key: combo.ending.cause for combo in combos} | {key: say(one) for key, one in basis.fewer.items()}
    unknown = collected.of_unknown_level
    means = () if unknown else macro_means(basis.policies, basis.environments, combos)
    seeds = {combo: side.starts.seeds for combo, side in results.sides.items() if isinstance(side, Arm)}
    summary = Summary(
        run=collected.name,
        grid=collected.plan.grid if collected.plan else None,
        metric=basis.metric,
        planned=collected.plan is not None,
        by_run=collected.by_run,
        timing=timing(collected, [combo.ending for combo in combos]),
        policies=basis.policies,
        environments=basis.environments,
        combos=combos,
        comparisons=comparisons,
        claims=_claims(basis, comparisons, causes, kinds, (*lost, *found_factors)),
        macro_means=tuple(replace(mean, rank=comparisons.rank(mean.policy)) for mean in means),
        quality=quality(collected, basis.counted, tuple(_findings(basis, combos, comparisons))),
        provenance=dict(sorted(collected.origin.items())),
        canary=collected.canary,
        part=say(collected.part) if collected.part else "",
        differences=tuple(differences(collected, seeds)),
        kinds=kinds,
        trends=tuple(replace(one, written_over=_written_over(one, collected.followed)) for one in found_trends),
        videos=collected.videos,
        trainings=trainings(collected.sessions, collected.trained),
        of_unknown_level=unknown,
        only_paths=collected.policies_of_paths,
        runs_of_one=() if collected.plan else basis.runs_of_one,
        policies_alike=() if collected.plan else basis.spelled_alike("policy"),
        environments_alike=() if collected.plan else basis.spelled_alike("environment"),
        losses=lost,
        factors=found_factors,
        gates=_checked(gates, basis),
        strengths=strengths({} if stopping else results.sides) if ranked else None,
    )
    return Report(summary, tuple(chain.from_iterable(combo.accepted for combo in basis.counted)))


def _written_over(found: Trend, followed: Sequence[Fact]) -> tuple[str, ...]:
    over = {name for one in followed if one.code == WRITTEN_OVER for name in one.texts("policies")}
    return tuple(one.policy for one in found.checkpoints if one.policy in over)


def _claims(
    basis: Basis,
    comparisons: Comparisons,
    causes: Mapping[Combo, str],
    kinds: Sequence[KindComparison],
    besides: Sequence[Loss | Factor],
) -> Claims:
    names = in_quotes(basis.policies, basis.environments)
    told = with_names(comparisons, names), with_names(causes, names), with_names(kinds, names)
    by_numbers = basis.metric is not None and not any(side.counts[1] for side in basis.sides.values())
    return claims(*told, basis.names_alike, with_names(besides, names), by_numbers=by_numbers)


def _with_comparisons(
    combos: Iterable[ComboSummary], found: Comparisons, metric: Measure | None
) -> Iterator[ComboSummary]:
    """With letters and reasons by success rates, or else by the metric."""
    if metric and not found.environments and (by_metric := found.by_metric_within(metric.name)):
        combos = [*combos]
        groups = grouped(combos, lambda one: one.environment).items()
        told = {one.key: one for name, own in groups for one in _by_metric(own, by_metric.get(name, []), metric)}
        yield from (told[one.key] for one in combos)
        return
    by_combo, marks = found.by_combo(), found.letters_by_combo()
    for combo in combos:
        tested = by_combo.get(combo.key, [])
        why = (one.pairing for one in tested if not one.paired)
        yield _with_reasons(combo, marks.get(combo.key, ""), why, tested)


def _by_metric(combos: Sequence[ComboSummary], found: Sequence[ByMetric], metric: Measure) -> Iterator[ComboSummary]:
    """The combos of one environment."""
    means = {one.policy: mean.mean for one in combos if (mean := one.metrics_by_name.get(metric.name))}
    ranked = sorted(means, key=lambda policy: means[policy] * (1 if metric.better == "lower" else -1))
    whole = len(found) == len(ranked) * (len(ranked) - 1) / 2
    marks = dict(letters(ranked, [(one.a, one.b) for one in found if one.decided])) if whole else {}
    for combo in combos:
        tested = [one for one in found if combo.policy in {one.a, one.b}]
        why = (reason for one in tested for reason in one.unpaired)
        yield _with_reasons(combo, marks.get(combo.policy, ""), why, tested)


def _with_reasons(combo: ComboSummary, marks: str, why: Iterable[str], tested: Iterable[Tested]) -> ComboSummary:
    """`why`: reasons why it is not paired; `tested`: its comparisons, which name what limits them"""
    limits = "; ".join(map(evidence_words.say, limited(tested)))
    return replace(combo, letters=marks, not_paired="; ".join(dict.fromkeys(why)), limits=limits)


def _findings(basis: Basis, combos: Sequence[ComboSummary], comparisons: Comparisons) -> Iterator[DataFinding]:
    """What to know of the data, besides what the files themselves show."""
    yield from _warnings(combos, basis.results.counts)
    yield from training_findings(trainings(basis.collected.sessions, basis.collected.trained))
    yield from (DataFinding("names", evidence_words.say(fact)) for fact in basis.names_alike)
    if names := basis.collected.of_unknown_level:
        yield DataFinding("names", say(Fact(ONE_LEVEL, names=names)))
    yield from evidence(basis.results)
    yield from single_runs(comparisons)
    yield from prevented(comparisons)
    yield from (DataFinding(combo_name(*combo), say(fact)) for combo, fact in basis.fewer.items())
    yield from (DataFinding(fact.text("environment"), say(fact)) for fact in unlike_kinds(basis.ends))
    yield from (DataFinding("metrics", evidence_words.say(fact)) for fact in basis.fields.facts)
    yield from (DataFinding("metrics", evidence_words.say(fact)) for fact in _not_compared(basis, comparisons))
    yield from _untimed(combos)
    if basis.nominal not in ("", *basis.environments):
        yield DataFinding("nominal", f"there is no environment {basis.nominal!r}")
    elif basis.nominal and not basis.metric and not basis.stopping:
        lacking = sorted({policy for policy, _ in basis.sides} - {one.policy for one in basis.losses})
        why = f"{', '.join(lacking)}: no loss, for lack of completed episodes in {basis.nominal!r} or elsewhere"
        yield from [DataFinding("nominal", why)] * bool(lacking)
    if basis.metric and not basis.stopping and not comparisons.all:
        asked = [*["margin"] * bool(basis.margin), *["nominal"] * bool(basis.nominal)]
        yield from (DataFinding(name, "is of success rates, and no episode has a verdict") for name in asked)
    if not basis.stopping:
        yield from without_levels(basis.results, basis.named_factors, basis.factors)


def _not_compared(basis: Basis, comparisons: Comparisons) -> Iterator[Fact]:
    """Graded progress beside verdicts, where the grid compares by no metric."""
    compared = basis.metric or basis.stopping or any(one.session.results.compare for one in basis.collected.sessions)
    if comparisons.all and not compared:
        for name in basis.fields.shares:
            if Measure.of(name, (), ()).better == "higher":
                yield Fact(FieldFact.GRADED, field=name)


def _combos(basis: Basis) -> Iterator[ComboSummary]:
    collected, results = basis.collected, basis.results
    sessions, timed = collected.by_combo, time_field(one.accepted for one in results.merged.values())
    for combo in basis.order:
        if combo in results.merged or combo in sessions or combo in results.counts:
            side = results.sides.get(combo)
            # Without verdicts no run has a rate.
            runs = len(side.run_rates or side.runs) if isinstance(side, Arm) else 0
            data = ComboData(
                histories=as_run(sessions.get(combo, ())),
                merged=results.merged.get(combo),
                tally=results.counts.get(combo),
                starts=side.by_start if side and side.by_start[1] < side.counts[1] else None,
                groups=side.starts.groups(side.completed) if isinstance(side, Arm) else None,
                ends=basis.ends.get(combo),
                not_needed=size(basis.spare.get(combo, ())),
                fields=basis.fields,
                runs=runs if runs > 1 else None,
            )
            yield summarize_combo(combo, data, timed=timed, run_over=bool(collected.done))


def _compared(
    basis: Basis,
) -> tuple[Comparisons, tuple[KindComparison, ...], tuple[Trend, ...]]:
    """Success rates, failure kinds and checkpoints; only the rates if the results chose the number of episodes."""
    if basis.stopping:
        return compare(basis.by_environment, basis.stopping), (), ()
    graded = () if how_many(basis.by_environment) > MOST else _graded(basis)
    plan = basis.collected.plan
    series = steps_of(basis.policies, dict(plan.steps) if plan else {}, one_training=bool(plan and plan.follow))
    found = tuple(one for steps in series if (one := trend_of(steps, basis.results.sides)))
    return compare(basis.by_environment, None, graded, basis.margin), compare_kinds(basis.ends, basis.sides), found


def _checked(texts: Sequence[str], basis: Basis) -> tuple[GateResult, ...]:
    if not texts:
        return ()
    gates = [parse_gate(text, basis.policies, basis.environments) for text in texts]
    why = "the number of episodes depends on their results: the run is not over, or could stop early"
    return check(gates, basis.by_environment, why if basis.stopping else "")


def _graded(basis: Basis) -> tuple[Graded | MeanDifference, ...]:
    collected, results, fields = basis.collected, basis.results, basis.fields
    named = {
        (name, combo[1])
        for combo, histories in collected.by_combo.items()
        for name in histories[0].session.results.compare
    }
    merged = results.merged
    if not named and basis.metric:
        named = {(basis.metric.name, environment) for _, environment in merged}
    found: dict[str, dict[str, list[Arm]]] = {}
    for combo in basis.order:
        for metric in sorted(name for name, environment in named if environment == combo[1] and combo in merged):
            one = scores(merged[combo], metric, results.settled.get(combo), fields)
            if one.values and (metric, combo[1]) not in fields.other_units:
                found.setdefault(metric, {}).setdefault(combo[1], []).append(one)
    return tuple(one for metric, environments in found.items() for one in compare_graded(metric, environments))


def _untimed(combos: Sequence[ComboSummary]) -> Iterator[DataFinding]:
    """Successes that the curves of time to success leave out, in environments that have some."""
    fields = {one.environment: one.time_to_success.field for one in combos if one.time_to_success}
    for combo in combos:
        field = fields.get(combo.environment)
        if field is None:
            continue
        untimed = combo.time_to_success.untimed if combo.time_to_success else combo.counts and combo.counts.successes
        if untimed and combo.counts:
            lacking = f"{untimed} of {several(combo.counts.successes, 'success', 'successes')}"
            yield DataFinding(combo.name, f"{lacking} without a time in {field!r}: its curve lacks them")


def _warnings(combos: Iterable[ComboSummary], tallied: Collection[Combo]) -> Iterator[DataFinding]:
    for combo in combos:
        yield from (DataFinding(combo.name, warning) for warning in combo.ending.warnings)
        yield from (DataFinding(combo.name, f"no record has the metric {name!r}") for name in combo.metrics_absent)
    for combo in combos:
        if combo.key in tallied and combo.counts and combo.counts.missing:  # counts alone have no numbers
            missing = f"{combo.counts.missing} of {combo.counts.planned} episodes missing"
            yield DataFinding(combo.name, f"{missing}, not told which")
