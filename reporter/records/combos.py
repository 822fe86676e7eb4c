"""Tells the runs of one combo in a folder apart, once paths and rows have named it. Pure.

Two runs may lie in places whose paths don't distinguish them. Episodes of two runs are never joined into one.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from comborun.model.attempt import Aggregate, EpisodeRecord
from comborun.model.work import Combo
from comborun.reporter.evidence.starts import RUN
from comborun.reporter.evidence.states import plain, shown
from comborun.reporter.records.levels import NAME_COMBO, settle_levels
from comborun.reporter.records.path_parts import (
    REPLICA,
    SAYS_NOTHING,
    SHARD,
    TASK,
    combo_of_path,
    dated,
    policy_of_path,
    replicas,
    run_in,
    stem_of,
    without_date,
)
from comborun.reporter.records.reading import UNNAMED, Reading
from comborun.reporter.text import combo_name
from comborun.rules.results import formats
from comborun.rules.results.fields import ENVIRONMENT, POLICY
from comborun.text import natural

NAME_ENVIRONMENT = frozenset({formats.JOB_ROWS, formats.EVAL_INFO, formats.TUPLES})
"""formats whose records name their environment, and perhaps no policy"""
ALL = "*"
"""the name of a file if all names in a folder are episodes"""
_DIGITS = re.compile(r"\d+")

EntryKey = tuple[int, int | None]
"""attempt and episode; None for a count"""


def settle(files: Sequence[Reading]) -> None:
    settle_levels(files)
    _policies_beside_tasks(files)
    own: dict[int, dict[Combo, Combo]] = {}
    shared = _shares(files)
    apart = {combo: _parts(shares) for combo, shares in shared.items() if _clash(shares)}
    by_words = _tasks_by_words(shared, apart)
    for combo, shares in shared.items():
        if combo in by_words:
            names = _of_tasks(combo, by_words[combo])
        elif combo in apart:
            names = _names_of_runs(combo, apart[combo])
        else:
            _name_run(combo, shares)
            continue
        for share, name in names:
            own.setdefault(id(share.file), {})[combo] = name
    for file in files:
        if id(file) in own:
            file.rename(own[id(file)])


def _policies_beside_tasks(files: Sequence[Reading]) -> None:
    """Of rows that name an environment: it may be both names of the path in one (`pi0_pick` in `pi0/pick`), and a
    folder may have the name of another file's environment."""
    naming = [file for file in files if file.format in NAME_ENVIRONMENT]
    for file in naming:
        outer, inner = combo_of_path(file.path)
        wholes = {f"{a}{sign}{b}" for a, b in ((outer, inner), (inner, outer)) for sign in "_-/"}
        if file.combos and all(combo[1] in wholes for combo in file.combos):
            file.rename(dict.fromkeys(file.combos, (outer, inner)))
            file.guessed = {(POLICY, outer), (ENVIRONMENT, inner)}
    tasks = {environment for file in files for _, environment in file.combos}
    for file in naming:
        outward = policy_of_path(file.path, tasks)
        by_path = (combo for combo in file.combos if combo[0] == policy_of_path(file.path, {combo[1]}) != outward)
        if renamed := {combo: (outward, combo[1]) for combo in by_path}:
            file.rename(renamed)


@dataclass(frozen=True)
class _Share:
    file: Reading
    path: PurePosixPath
    entries: Mapping[EntryKey, EpisodeRecord | Aggregate]

    @property
    def naming(self) -> bool:
        """Whether its records name the combo: then equal files are copies. Runs that paths name may have gone alike."""
        return self.file.format in NAME_COMBO and not self.file.guessed

    @property
    def names(self) -> tuple[str, ...]:
        """The parts of its path, without the file's ending."""
        return (*self.path.parts[:-1], stem_of(self.path))

    @property
    def process(self) -> tuple[str, ...]:
        """The parts of its path that say which process wrote it, in which run, or when."""
        return tuple(part for part in self.names if SHARD.fullmatch(part) or run_in(part) or without_date(part) != part)

    def of_one_run(self, other: _Share, key: EntryKey) -> bool:
        """Whether both may describe an episode of the same run."""
        alike = _result(self.entries[key]) == _result(other.entries[key]) and self.process == other.process
        return alike and ((self.naming and other.naming) or self.beside(other))

    def beside(self, other: _Share) -> bool:
        """Whether two files in one folder are of one run: different kinds are; `seed1.log` and `seed2.log` are not."""
        kinds = {_DIGITS.sub("", share.path.name) for share in (self, other)}
        return self.path.parent == other.path.parent and len(kinds) > 1


def content(record: EpisodeRecord) -> tuple[object, ...]:
    return (record.verdict, record.seed, dict(record.metrics), dict(record.extra))


def _result(one: EpisodeRecord | Aggregate) -> tuple[object, ...]:
    return content(one) if isinstance(one, EpisodeRecord) else (one.successes, one.episodes)


def _shares(files: Sequence[Reading]) -> dict[Combo, list[_Share]]:
    shares: defaultdict[Combo, list[_Share]] = defaultdict(list)
    for file in files:
        path = PurePosixPath(file.path, ALL if file.format == formats.NAMED else "")
        by_combo: defaultdict[Combo, dict[EntryKey, EpisodeRecord | Aggregate]] = defaultdict(dict)
        for one in file.entries:
            episode = one.episode if isinstance(one, EpisodeRecord) else None
            by_combo[one.combo].setdefault((one.attempt, episode), one)
        for combo, entries in by_combo.items():
            shares[combo].append(_Share(file, path, entries))
    return shares


def _clash(shares: Iterable[_Share]) -> bool:
    """Whether two of these files can't be of one run: both have the same episode, or one of them has only counts."""
    first_with: dict[EntryKey, _Share] = {}
    counting: dict[int, _Share] = {}
    listing: dict[int, _Share] = {}
    for share in shares:
        for key in share.entries:
            first = first_with.setdefault(key, share)
            if first is not share and not first.of_one_run(share, key):
                return True
            (counting if key[1] is None else listing).setdefault(key[0], share)
    both = ((share, listing[attempt]) for attempt, share in counting.items() if attempt in listing)
    return any(count is not episodes and not count.beside(episodes) for count, episodes in both)


_Parts = Sequence[tuple[str, Sequence[_Share]]]
"""the files of each run or task of a combo, by what its path has and the others' paths lack"""


def _parts(shares: Sequence[_Share]) -> _Parts:
    """By the outermost folders that distinguish the runs."""
    groups: dict[tuple[str, ...], list[_Share]] = {}
    for depth in range(1, max(len(share.path.parts) for share in shares) + 1):
        groups = {}
        for share in shares:
            groups.setdefault(share.path.parts[:depth], []).append(share)
        if not any(_clash(group) for group in groups.values()):
            break
    labels = _labels(list(groups), {share.path.parts for share in shares})
    return [*zip(labels, groups.values(), strict=True)]


def _names_of_runs(combo: Combo, parts: _Parts) -> Iterator[tuple[_Share, Combo]]:
    """Name the policy of each run, or of tasks the environment. Runs that say so are joined."""
    labels, groups = [label for label, _ in parts], [group for _, group in parts]
    shards, runs = all(map(SHARD.fullmatch, labels)), _runs_by_field(groups) or replicas(labels)
    joined = (shards or runs) and (combo[0] != UNNAMED or (dated(labels) and without_date(labels[0])))
    if joined and not any(None in key for group in groups for key in _keys(group)):
        _join(combo, [*zip(runs or labels, groups, strict=True)], runs=not shards)
        return
    if tasks := _tasks(combo, parts):
        yield from _of_tasks(combo, tasks)
        return
    firsts = [group[0].file for group in groups]
    asked = False
    for label, group in parts:
        called = _name_of_part(combo, label)
        yield from ((share, called) for share in group)
        own = group[0].file
        for share in group:
            if combo[0] != UNNAMED:
                share.file.parted.add(called[0])
            elif (ENVIRONMENT, combo[1]) in share.file.guessed:
                share.file.guessed.add((ENVIRONMENT, called[1]))
        if {*combo} == {UNNAMED}:  # one question asks of all of them
            continue
        other = next(file for file in firsts if file is not own).path
        kind = ENVIRONMENT if combo[0] == UNNAMED else POLICY
        reason = f"of one combo with {other}, {combo_name(*combo)}, and not of one run: its {kind} is called"
        own.defect(0, f"{reason} {called[kind == ENVIRONMENT]!r}{'' if asked else _ARE_RUNS}")
        asked = True


def _name_of_part(combo: Combo, label: str) -> Combo:
    """What two files of an unnamed policy differ in, such as a date, is no policy."""
    if combo[0] != UNNAMED:
        return f"{combo[0]} ({label})", combo[1]
    return combo[0], label if combo[1] == UNNAMED else f"{combo[1]} ({label})"


_ARE_RUNS = (
    "; are these runs of one policy? Then call their files or folders seed0 and seed1, or give a field `train_seed`"
)


def _runs_by_field(groups: Sequence[Sequence[_Share]]) -> list[str]:
    """Names of runs, if a field such as `train_seed` has one value in each, and another in the others."""
    told: list[dict[str, set[object]]] = []
    for group in groups:
        values: dict[str, set[object]] = {}
        for record in (one for share in group for one in share.entries.values() if isinstance(one, EpisodeRecord)):
            for name in filter(RUN.fullmatch, (*record.metrics, *record.extra)):
                values.setdefault(name, set()).add(plain(record.field(name)))
        told.append({name: found for name, found in values.items() if len(found) == 1})
    for name in sorted(set(told[0]).intersection(*told)):
        runs = [value for found in told for value in found[name]]
        if len(set(runs)) == len(runs) and None not in runs:
            return [f"{name} {shown(value)}" for value in runs]
    return []


def _without_names(combo: Combo, label: str) -> str:
    return re.sub(rf"^(?:{re.escape(combo[0])}|{re.escape(combo[1])})[-_.]", "", label)


def _tasks(combo: Combo, parts: _Parts) -> _Parts:
    """The parts by their numbers of tasks, if all are called so."""
    tasks = [(_without_names(combo, label), group) for label, group in parts]
    return tasks if UNNAMED not in combo and all(TASK.fullmatch(label) for label, _ in tasks) else []


def _tasks_by_words(shared: Mapping[Combo, Sequence[_Share]], apart: Mapping[Combo, _Parts]) -> dict[Combo, _Parts]:
    """Parts that are tasks because another policy has a file or folder of the same name: `pi0/pick_cup.jsonl` and
    `act/pick_cup.jsonl`. Names of runs, processes and dates are no tasks."""
    named: dict[Combo, _Parts] = {
        combo: [(_without_names(combo, label), group) for label, group in parts]
        for combo, parts in apart.items()
        if UNNAMED not in combo and not _runs_by_field([group for _, group in parts])
    }
    found: dict[Combo, _Parts] = {}
    for combo, parts in named.items():
        labels = {label for label, _ in parts}
        kinds = (REPLICA, SHARD, SAYS_NOTHING)
        if replicas([*labels]) or any(kind.fullmatch(one) for one in labels for kind in kinds):
            continue
        others = [other for other in shared if other[1] == combo[1] and other[0] != combo[0]]
        for other in others:
            if other in named and labels.intersection(label for label, _ in named[other]):
                found[combo] = parts
            elif other not in apart and len(single := labels & _names_in(other, shared[other])) == 1:
                found[combo] = parts
                found[other] = [(single.pop(), shared[other])]
    return found


def _names_in(combo: Combo, shares: Sequence[_Share]) -> set[str]:
    """The parts that all paths of a combo have."""
    first, *others = ({_without_names(combo, name) for name in share.names} for share in shares)
    return first.intersection(*others) - {*combo}


def _of_tasks(combo: Combo, parts: _Parts) -> Iterator[tuple[_Share, Combo]]:
    for label, group in parts:
        task = combo[0], f"{combo[1]}/{label}"
        yield from ((share, task) for share in group)
        group[0].file.defect(0, f"a task of {combo_name(*combo)}: its environment is called {task[1]!r}")


def _name_run(combo: Combo, shares: Sequence[_Share]) -> None:
    """If all files of a combo lie in one folder that is called like a run, or are, note that it is of that run."""
    runs = {next((run[0] for part in reversed(share.names) if (run := run_in(part))), "") for share in shares}
    name, *others = runs
    if name and not others:
        episodes = range(1 + max(key[1] or 0 for key in _keys(shares)))
        for share in shares:
            share.file.runs[combo] = name, episodes


def _keys(shares: Iterable[_Share]) -> set[EntryKey]:
    return {key for share in shares for key in share.entries}


def _join(combo: Combo, parts: _Parts, *, runs: bool) -> None:
    """Runs of one policy, or the processes of one run, are one policy: the episodes of each are numbered after those of
    the one before."""
    length = 1 + max(key[1] or 0 for _, shares in parts for key in _keys(shares))
    for place, (label, shares) in enumerate(sorted(parts, key=lambda part: natural(part[0]))):
        episodes = range(place * length, (place + 1) * length)
        for share in shares:
            share.file.join(combo, label if runs else "", episodes)
        if place:
            what = f"another {'run' if runs else 'process'} of {combo_name(*combo)}, {label!r}"
            reason = f"{what}: joined with the others, its episodes count from"
            shares[0].file.defect(0, f"{reason} {episodes.start}")


def _labels(prefixes: Sequence[tuple[str, ...]], files: set[tuple[str, ...]]) -> list[str]:
    """The part of each prefix that the others don't share."""
    shared = {at for at in range(min(map(len, prefixes))) if len({prefix[at] for prefix in prefixes}) == 1}
    own = [PurePosixPath(*(part for at, part in enumerate(prefix) if at not in shared)) for prefix in prefixes]
    short = [str(path.with_suffix("") if prefix in files else path) for prefix, path in zip(prefixes, own, strict=True)]
    return short if len(set(short)) == len(short) else [str(path) for path in own]
