"""Which combo each file of a folder tells of, once all of them have been read. Pure.

What a path alone says can be wrong: a folder's name may be a task's, and two runs may lie where nothing that paths are
known to say tells them apart. Episodes of two runs are never taken for those of one.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from comborun.attempt import EpisodeRecord
from comborun.reporter.adapters import Defect, Reading, places
from comborun.reporter.adapters.sniff import Format
from comborun.reporter.merge import content
from comborun.reporter.text import combo_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from comborun.attempt import Aggregate
    from comborun.work import Combo

NAMING = frozenset({Format.JSONL_ROWS, Format.COMPLETION_ROWS})
"""formats whose records name their own combo"""
HALF_NAMING = frozenset({Format.EVAL_INFO, Format.JOB_ROWS, Format.LOG_TUPLE})
"""formats that may name an environment and no policy"""

ALL = "*"
"""the file, where all names of a folder are episodes"""
_DIGITS = re.compile(r"\d+")


@dataclass(frozen=True)
class Told:
    """What one file says, or one folder of files whose names are the episodes."""

    path: str
    format: str
    """empty where it is of none"""
    reading: Reading


def settled(files: Sequence[Told]) -> tuple[Reading, ...]:
    """The readings, in their order, each under the combos that it is of."""
    tasks = {one.environment for file in files for one in _entries(file.reading)}
    placed = [_placed(file, tasks) if file.format in HALF_NAMING else file for file in files]
    readings = [file.reading for file in placed]
    for combo, shares in _shares(placed).items():
        for run in _told_apart(combo, shares):
            for index in run.members:
                readings[index] = run.rename(readings[index])
            readings[run.members[0]] = run.tell(readings[run.members[0]])
    return tuple(readings)


def _entries(reading: Reading) -> Iterable[EpisodeRecord | Aggregate]:
    return chain(reading.records, reading.aggregates)


def _placed(file: Told, tasks: set[str]) -> Told:
    """With the policy in a folder further out, where its own is called like the environment of another file."""
    combos = {one.combo for one in _entries(file.reading)}
    by_path = {combo for combo in combos if combo[0] == places.policy(file.path, {combo[1]})}
    outward = {combo: places.policy(file.path, tasks) for combo in by_path}
    return replace(file, reading=_with_policies(file.reading, outward))


def _with_policies(reading: Reading, names: Mapping[Combo, str]) -> Reading:
    """With other policies for these combos."""
    if all(combo[0] == policy for combo, policy in names.items()):
        return reading
    return replace(
        reading,
        records=tuple(replace(one, policy=names.get(one.combo, one.policy)) for one in reading.records),
        aggregates=tuple(replace(one, policy=names.get(one.combo, one.policy)) for one in reading.aggregates),
    )


@dataclass(frozen=True)
class _Share:
    """What one file tells of one combo."""

    index: int
    """of the file"""
    path: PurePosixPath
    naming: bool
    """whether its records name the combo: two that say the same are then copies"""
    told: Mapping[tuple[int, int | None], EpisodeRecord | Aggregate]
    """by attempt and episode; by attempt and None for a count"""

    def of_one_run(self, other: _Share, key: tuple[int, int | None]) -> bool:
        """Whether what both tell of an episode can be from the same run."""
        return _said(self.told[key]) == _said(other.told[key]) and (
            (self.naming and other.naming) or self.beside(other)
        )

    def beside(self, other: _Share) -> bool:
        """Two kinds of file in one folder look at the same run; `seed1.log` and `seed2.log` don't."""
        kinds = {_DIGITS.sub("", share.path.name) for share in (self, other)}
        return self.path.parent == other.path.parent and len(kinds) > 1


def _said(one: EpisodeRecord | Aggregate) -> tuple[object, ...]:
    return content(one) if isinstance(one, EpisodeRecord) else (one.successes, one.episodes)


def _shares(files: Sequence[Told]) -> dict[Combo, list[_Share]]:
    """By combo, in the order of the files."""
    shares: defaultdict[Combo, list[_Share]] = defaultdict(list)
    for index, file in enumerate(files):
        path = PurePosixPath(file.path, ALL if file.format == Format.FILENAME_ENCODED else "")
        told: defaultdict[Combo, dict[tuple[int, int | None], EpisodeRecord | Aggregate]] = defaultdict(dict)
        for one in _entries(file.reading):
            episode = one.episode if isinstance(one, EpisodeRecord) else None
            told[one.combo].setdefault((one.attempt, episode), one)
        for combo, entries in told.items():
            shares[combo].append(_Share(index, path, file.format in NAMING, entries))
    return shares


def _clash(shares: Iterable[_Share]) -> bool:
    """Whether two of these files can't be of one run: both tell of the same episode, or one of them counts."""
    telling: dict[tuple[int, int | None], _Share] = {}
    counting: dict[int, _Share] = {}
    listing: dict[int, _Share] = {}
    for share in shares:
        for key in share.told:
            first = telling.setdefault(key, share)
            if first is not share and not first.of_one_run(share, key):
                return True
            (counting if key[1] is None else listing).setdefault(key[0], share)
    both = ((share, listing[attempt]) for attempt, share in counting.items() if attempt in listing)
    return any(count is not episodes and not count.beside(episodes) for count, episodes in both)


@dataclass(frozen=True)
class _Run:
    """The files of a combo that are of one run, where others are of another."""

    combo: Combo
    members: tuple[int, ...]
    """places among the files"""
    path: str
    """of its first file"""
    other: str
    """the first file of another run"""
    label: str
    """what is in the paths of this run alone"""

    @property
    def policy(self) -> str:
        return self.label if self.combo[0] == places.UNNAMED else f"{self.combo[0]} ({self.label})"

    def rename(self, reading: Reading) -> Reading:
        return _with_policies(reading, {self.combo: self.policy})

    def tell(self, reading: Reading) -> Reading:
        told = f"of one combo with {self.other}, {combo_name(*self.combo)}, and not of one run: its policy is called"
        return replace(reading, defects=(*reading.defects, Defect(self.path, 0, f"{told} {self.policy!r}")))


def _told_apart(combo: Combo, shares: Sequence[_Share]) -> list[_Run]:
    """The runs by the outermost folders that tell them apart; none where all can be of one."""
    if not _clash(shares):
        return []
    groups: dict[tuple[str, ...], list[_Share]] = {}
    for depth in range(1, max(len(share.path.parts) for share in shares) + 1):
        groups = {}
        for share in shares:
            groups.setdefault(share.path.parts[:depth], []).append(share)
        if not any(_clash(group) for group in groups.values()):
            break
    firsts = [group[0] for group in groups.values()]
    labels = _labels(list(groups), {share.path.parts for share in shares})
    return [
        _Run(combo, tuple(share.index for share in group), _shown(group[0]), _shown(_another(firsts, group[0])), label)
        for group, label in zip(groups.values(), labels, strict=True)
    ]


def _another(firsts: Sequence[_Share], own: _Share) -> _Share:
    return next(share for share in firsts if share is not own)


def _shown(share: _Share) -> str:
    return str(share.path).removesuffix(f"/{ALL}")


def _labels(prefixes: Sequence[tuple[str, ...]], files: set[tuple[str, ...]]) -> list[str]:
    """Of each prefix what the others don't share; of a file without its suffix, where that tells nothing."""
    shared = {at for at in range(min(map(len, prefixes))) if len({prefix[at] for prefix in prefixes}) == 1}
    own = [PurePosixPath(*(part for at, part in enumerate(prefix) if at not in shared)) for prefix in prefixes]
    short = [str(path.with_suffix("") if prefix in files else path) for prefix, path in zip(prefixes, own, strict=True)]
    return short if len(set(short)) == len(short) else [str(path) for path in own]
