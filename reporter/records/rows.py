"""Settles what the rows of a folder are before they are counted: episodes, copies of another file, or neither. Pure.

Rows that are no episodes have no verdict. Nothing says which of several rows is the episode's, and a mean of 50 trials
is no success.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, groupby
from math import comb
from operator import attrgetter
from pathlib import PurePosixPath

from comborun.model.attempt import (
    EpisodeRecord,
    Verdict,
    field_column,
    having,
    held,
    metric_columns,
    packed,
)
from comborun.model.work import Combo, grouped
from comborun.reporter.evidence.starts import RUN
from comborun.reporter.evidence.states import shown
from comborun.reporter.records.backups import drop_backups
from comborun.reporter.records.naming import naming
from comborun.reporter.records.reading import Reading
from comborun.reporter.records.tries import settle_tries
from comborun.rules.facts import Fact
from comborun.rules.results.caught import WITH_ERRORS, broken_off
from comborun.rules.results.counts import REPEAT
from comborun.rules.results.fields import TEXT_MOST
from comborun.rules.results.repeats import STEP, apart_by, of_parts, within_episode
from comborun.text import natural
from comborun.words import say

COPY, SUMMARY, SEVERAL_ROWS, MEANS = "copy_of_file", "summary_of_file", "several_rows_per_episode", "means_of_trials"
NO_VERDICTS, DESPITE_ERRORS = "no_verdicts_at_all", "successes_with_errors"
RUNS, STEPS = "runs_by_field", "steps_of_episodes"

TRIALS = (
    "n_trials",
    "num_trials",
    "trials",
    "n_rollouts",
    "num_rollouts",
    "rollouts",
    "n_episodes",
    "num_episodes",
    "n",
)
"""fields with the number of trials that a row is the mean of"""
RATES = ("success_rate", "sr", "success_ratio", "mean_success", "avg_success", "success_mean")
TRIES = 2
"""fewest episodes with several tries that went differently"""
CHANCE = 1000
"""two runs have the same sequence of verdicts by chance in fewer than one of so many cases"""
VALUES = 5
"""fewest different values of a number that tell as much"""
_OF_TOTAL = re.compile(r".*?(\d{1,9})\s*/\s*(\d{1,9})")

_VERDICTS = {Verdict.SUCCESS, Verdict.FAILURE}


def settle_rows(files: Sequence[Reading]) -> None:
    for file in files:
        _number(file)
    settle_tries(files)
    _name_copies(files)
    _drop_copies(files)
    drop_backups(files)
    _drop_summaries(files)
    for file in files:
        if found := _means(file):
            file.records = [*map(_without_verdict, file.records)]
            file.withdraw(file.proposal)
            file.codings = {}  # no line makes a mean a verdict
            file.defect(0, say(found))
        else:
            if len({(one.combo, one.episode) for one in file.records}) < len(file.records):
                _number_runs(file)
                _join_steps(file)
                _hold_back_repeated(file)
            tell_errors(file)
    _measure(files)


def tell_errors(file: Reading) -> None:
    """Say which failures tell of an error: an episode that broke off is no failure of its policy. And which successes
    do: one of both is wrong."""
    names = {name for _, others in held(file.records) for name in others}
    for code, verdict in ((WITH_ERRORS, Verdict.FAILURE), (DESPITE_ERRORS, Verdict.SUCCESS)):
        judged = having(file.records, verdict)
        for field in sorted(names):
            texts = Counter(text for text in field_column(judged, field) if isinstance(text, str))
            found = [text for text in texts if broken_off(field, text, failed=verdict is Verdict.FAILURE)]
            if found:
                episodes = sum(texts[text] for text in found)
                file.defect(0, say(Fact(code, episodes=episodes, field=field, text=found[0][:TEXT_MOST])))


def _measure(files: Sequence[Reading]) -> None:
    """Rows of a folder that nowhere have a verdict, and nothing that looks like one, are episodes with numbers."""
    filled = [file for file in files if file.entries]
    if not filled or any(file.aggregates or file.lacking != len(file.records) for file in filled):
        return
    records = [one for file in filled for one in file.records]
    columns = metric_columns(records)
    firsts = {one.names: one.others for one in reversed(records)}.values()
    flags = any(isinstance(value, bool) for others in firsts for value in others)
    if flags or not columns or any({*values} <= {0.0, 1.0} for values in columns.values()):
        return
    for file in filled:
        file.records = [replace(one, verdict=Verdict.MEASURED) for one in file.records]
        file.withdraw(f"{say(Fact('no_verdict_field', field=file.judged_by))}: errored", file.proposal)
        file.defect(0, say(Fact(NO_VERDICTS, field=file.judged_by)))


def _without_verdict(record: EpisodeRecord) -> EpisodeRecord:
    return replace(record, verdict=Verdict.ERRORED) if record.verdict in _VERDICTS else record


def _number(file: Reading) -> None:
    """Number episodes that are called `1/10` to `10/10`: the second number is that of all of them."""
    if not any(file.numbered_by in names for _, names in {one.names for one in file.records}):
        return
    for combo, records in grouped(file.records, lambda one: one.combo).items():
        found = [_OF_TOTAL.fullmatch(str(one.field(file.numbered_by))) for one in records]
        pairs = [(int(match[1]), int(match[2])) for match in found if match]
        if len(pairs) == len(records) and len({of for _, of in pairs}) == 1 and all(at <= of for at, of in pairs):
            numbers = iter(pairs)
            file.records = [
                replace(one, episode=next(numbers)[0]) if one.combo == combo else one for one in file.records
            ]


# -- one evaluation in several files ----------------------------------------------------------------------------------


class _Share:
    """The episodes of a combo in one file."""

    def __init__(self, file: Reading, combo: Combo, records: Sequence[EpisodeRecord]) -> None:
        self.file, self.combo, self.records = file, combo, sorted(records, key=lambda one: (one.attempt, one.episode))
        self.folder = PurePosixPath(file.path).parent
        self.verdicts = [one.verdict for one in self.records]
        self.seeds = [one.seed for one in self.records]
        self.successes = self.verdicts.count(Verdict.SUCCESS)
        self.judged = self.successes + self.verdicts.count(Verdict.FAILURE)

    @property
    def rank(self) -> tuple[int, bool, int]:
        """Of several copies the highest counts: with the most episodes, then with a seed, then with the most fields."""
        first = self.records[0]
        return len(self.records), first.seed is not None, sum(map(len, first.names))

    def copies(self, other: _Share) -> bool:
        """Whether this is the same evaluation as the other, or its beginning."""
        n = len(self.verdicts)
        if self.verdicts != other.verdicts[:n]:
            return False
        if any(a != b for a, b in zip(self.seeds, other.seeds, strict=False) if None not in (a, b)):
            return False
        unlikely = self.judged == n and comb(n, self.successes) >= CHANCE
        formats = self.file.format != other.file.format and self.folder == other.folder and n == len(other.verdicts) > 1
        return unlikely or (formats and self.judged == n)


def _name_copies(files: Iterable[Reading]) -> None:
    """A file that begins with the rows of another in its folder, whose name is a part of its own, is no other
    environment: `results (1).csv`, `results_partial.csv`."""
    named = [file for file in files if file.guessed and len(file.combos) == 1 and not file.aggregates]
    for some in grouped(named, lambda file: PurePosixPath(file.path).parent).values():
        some.sort(key=lambda file: (len(PurePosixPath(file.path).stem), file.path))
        for at, file in enumerate(some):
            for other in some[:at]:
                if PurePosixPath(other.path).stem in PurePosixPath(file.path).stem and _same_rows(file, other):
                    file.rename({combo: name for combo in file.combos for name in other.combos})
                    file.guessed = {*other.guessed}
                    break


def _same_rows(file: Reading, other: Reading) -> bool:
    """Whether one of them is the beginning of the other, as two evaluations are not by chance."""
    ordered = (sorted(one.records, key=attrgetter("attempt", "episode")) for one in (file, other))
    pairs = [*zip(*ordered, strict=False)]
    names = set.intersection(*({*a.metrics} & {*b.metrics} for a, b in pairs))
    if any((a.verdict, a.episode, a.seed) != (b.verdict, b.episode, b.seed) for a, b in pairs):
        return False
    measured = any(len({a.metric(name) for a, _ in pairs}) >= VALUES for name in names)
    unlikely = comb(len(pairs), sum(a.verdict is Verdict.SUCCESS for a, _ in pairs)) >= CHANCE
    return (measured or unlikely) and all(a.metric(name) == b.metric(name) for a, b in pairs for name in names)


def _drop_copies(files: Iterable[Reading]) -> None:
    shares: defaultdict[Combo, list[_Share]] = defaultdict(list)
    for file in files:
        for combo, records in grouped(file.records, lambda one: one.combo).items():
            shares[combo].append(_Share(file, combo, records))
    for combo, found in shares.items():
        kept: list[_Share] = []
        for share in sorted(found, key=lambda one: one.rank, reverse=True):
            own = next((one for one in kept if share.copies(one)), None)
            if own is None:
                kept.append(share)
                continue
            share.file.records = [one for one in share.file.records if one.combo != combo]
            fact = Fact(COPY, file=own.file.path, episodes=len(share.records), policy=combo[0], environment=combo[1])
            share.file.defect(0, say(fact))


def _drop_summaries(files: Sequence[Reading]) -> None:
    """Counts beside the episodes that they count."""
    listed: defaultdict[PurePosixPath, list[Reading]] = defaultdict(list)
    for file in files:
        if file.records:
            listed[PurePosixPath(file.path).parent].append(file)
    for file in files:
        if len(file.aggregates) != 1:
            continue
        counted = file.aggregates[0]
        for other in listed[PurePosixPath(file.path).parent]:
            verdicts = Counter(one.verdict for one in other.records)
            if (verdicts[Verdict.SUCCESS], len(other.records)) == (counted.successes, counted.episodes):
                file.aggregates, file.unpaired = [], ""
                file.defect(
                    0, say(Fact(SUMMARY, file=other.path, successes=counted.successes, episodes=counted.episodes))
                )
                break


# -- rows that are no episodes ----------------------------------------------------------------------------------------


def _means(file: Reading) -> Fact | None:
    """Each row is the mean of several trials."""
    records = file.records
    names = set.intersection(*({*metrics} for metrics, _ in held(records))) if records else set()
    trials = next((name for name in TRIALS if name in names), None)
    if trials is None or min(counts := [int(one.metric(trials) or 0) for one in records]) < 2:
        return None
    rate = next((name for name in RATES if name in names), "")
    unjudged = all(one.verdict is Verdict.ERRORED for one in records)
    fractions = any(0 < (one.metric(file.judged_by) or 0) < 1 for one in records)
    whole = file.numeric == len(records) and not any(
        counts[0] == size for size in Counter(one.combo for one in records).values()
    )
    if not (fractions or whole or (unjudged and rate)):
        return None
    field = rate if unjudged and rate else file.judged_by
    return Fact(MEANS, field=field, rows=len(records), trials=trials, least=min(counts), most=max(counts))


def _number_runs(file: Reading) -> None:
    """Runs of one policy that number their episodes alike, if a field such as `train_seed` tells them apart: the
    episodes of each are numbered after those of the one before."""
    numbered: list[EpisodeRecord] = []
    for combo, records in grouped(file.records, lambda one: one.combo).items():
        name = _run_field(records)
        if name:
            length = 1 + max(one.episode for one in records)
            runs = field_column(records, name)
            places = {run: place for place, run in enumerate(sorted({*runs}, key=lambda run: natural(shown(run))))}
            both = zip(records, runs, strict=True)
            numbered += [replace(one, episode=one.episode + places[run] * length) for one, run in both]
            file.defect(0, say(Fact(RUNS, combo=[*combo], field=name, runs=len(places), length=length)))
        else:
            numbered += records
    file.records = numbered


def _run_field(records: Sequence[EpisodeRecord]) -> str:
    """The field that names the run of each record, if these repeat their indices and each run has an index once."""
    if len({one.episode for one in records}) == len(records):
        return ""
    for name in set.intersection(*({*chain(*names)} for names in held(records))):
        if RUN.fullmatch(name):
            runs = field_column(records, name)
            apart = all(isinstance(one, str | int | float) for one in runs)
            if apart and len({(one.episode, run) for one, run in zip(records, runs, strict=True)}) == len(records):
                return name
    return ""


def _join_steps(file: Reading) -> None:
    """Rows for the steps of an episode, one after another, that all have its verdict are one episode. Its other numbers
    are of a step, so only those that never vary in an episode are kept."""
    key = attrgetter("combo", "episode")
    episodes = [*grouped(file.records, key).values()]
    if sum(1 for _ in groupby(file.records, key)) > len(episodes) or any(
        len({one.verdict for one in rows}) > 1 or len({one.names for one in rows}) > 1 for rows in episodes
    ):
        return
    several = [rows for rows in episodes if len(rows) > 1]
    by = next((name for name in _counting(several) if STEP.search(name)), "") if several else ""
    if not by or 2 * len(several) < len(episodes) or {rows[0].names for rows in episodes} != {several[0][0].names}:
        return
    metrics, others = several[0][0].names
    vary = {name for name in metrics if any(len({one.metric(name) for one in rows}) > 1 for rows in several)}
    kept = [name for name in metrics if name not in vary]
    file.records = [
        replace(
            one,
            **packed({name: one.metric(name) or 0.0 for name in kept}, dict(zip(others, one.others, strict=True))),
        )
        for one in (rows[0] for rows in episodes)
    ]
    sizes = [*map(len, several)]
    fields = {"episodes": len(several), "least": min(sizes), "most": max(sizes), "by": by, "left_out": sorted(vary)}
    file.defect(0, say(Fact(STEPS, **fields)))


def _hold_back_repeated(file: Reading) -> None:
    """If most episodes of a combo have several rows, and verdicts differ or a field such as a scene tells them apart,
    nothing says which row counts. With such a field, a quarter of the episodes is enough: a file may hold episodes of
    training and of evaluation. If a field counts the tries of each episode, two episodes are enough: a policy that
    seldom tries again is judged like one that often does."""
    combos = grouped(file.records, lambda one: one.combo)
    unclear: dict[Combo, list[list[EpisodeRecord]]] = {}
    for combo, records in combos.items():
        episodes = [*grouped(records, lambda one: (one.session, one.attempt, one.episode)).values()]
        again = sum(len(rows) > 1 for rows in episodes)
        if 2 * again > len(episodes) or (4 * again >= len(episodes) and _apart(records)) or _tries(episodes):
            unclear[combo] = episodes
    several = [rows for episodes in unclear.values() for rows in episodes]
    contested = sum({one.verdict for one in rows} >= _VERDICTS for rows in several)
    apart = {} if contested else {combo: found for combo in unclear if (found := _apart(combos[combo]))}
    if not contested and not apart:
        return
    if apart:
        unclear = {combo: unclear[combo] for combo in apart}
        several = [rows for episodes in unclear.values() for rows in episodes]
    sizes = [*map(len, several)]
    if apart:
        rows, by = sum(sizes), next(iter(apart.values()))
        keys = {} if of_parts(by) else {"keys": [{"key": "episode", "value": "line"}]}
        fact = Fact(REPEAT, rows=rows - len(several), of=rows, by=by, **keys)
    else:
        fields = {"episodes": len(several), "least": min(sizes), "most": max(sizes), "contested": contested}
        by = next(_counting([rows for rows in several if len(rows) > 1]), "")
        by = by or next(filter(None, (_apart(combos[combo]) for combo in unclear)), "")
        named = naming(several, {kind for kind, _ in file.guessed}, by)
        inside = any(map(within_episode, _varying(several)))
        fact = Fact(
            SEVERAL_ROWS,
            **fields,
            by="" if named else by,
            **({"names": [[*pair] for pair in named.items()]} if named else {}),
            **({} if named or inside else {"keys": [{"key": "episode", "value": "line"}]}),
        )
    others = [one for one in file.records if one.combo not in unclear]
    file.records = others + [_without_verdict(rows[0]) for rows in several]
    file.defect(0, say(fact))


def _tries(episodes: Sequence[Sequence[EpisodeRecord]]) -> bool:
    """Whether a field that begins alike in all episodes grows from row to row of some, and verdicts of these differ."""
    several = [rows for rows in episodes if len(rows) > 1]
    if sum({one.verdict for one in rows} >= _VERDICTS for rows in several) < TRIES:
        return False
    return any(len({rows[0].metric(name) for rows in episodes}) == 1 for name in _counting(several))


def _apart(records: Sequence[EpisodeRecord]) -> str:
    """The field by which rows with one index are of different tasks, scenes or instances."""
    rows = [(one.episode, {name: one.field(name) for name in chain(*one.names)}) for one in records]
    plain = (str, int, float)
    return apart_by([(at, {name: one for name, one in row.items() if isinstance(one, plain)}) for at, row in rows])


def _varying(several: Sequence[Sequence[EpisodeRecord]]) -> Iterator[str]:
    """Fields that differ between the rows of an episode."""
    for name in {name for rows in several for one in rows for name in chain(*one.names)}:
        if any(len({str(one.field(name)) for one in rows}) > 1 for rows in several):
            yield name


def _counting(several: Sequence[Sequence[EpisodeRecord]]) -> Iterator[str]:
    """Fields that grow from row to row of an episode: its steps."""
    for name in several[0][0].names[0]:
        values = [[one.metric(name) for one in rows] for rows in several]
        if all(None not in row and row == sorted({*row}, key=lambda one: one or 0) for row in values):
            yield name
