"""Decides which combo each file of a folder belongs to, once all files were read. Pure.

A path alone can be misleading: a folder's name may be a task's, and two runs may lie in places whose paths don't
distinguish them. Episodes of two runs are never joined into one.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from comborun.attempt import EpisodeRecord
from comborun.reporter.merge import content
from comborun.reporter.records import paths
from comborun.reporter.records.files import NAME_COMBO, NAME_ENVIRONMENT
from comborun.reporter.records.paths import UNNAMED
from comborun.reporter.text import combo_name
from comborun.rules.formats import NAMED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from comborun.attempt import Aggregate
    from comborun.reporter.records.reading import Reading
    from comborun.work import Combo

ALL = "*"
"""stands for the file if all names of a folder are episodes"""
_DIGITS = re.compile(r"\d+")

Told = tuple[int, int | None]
"""attempt and episode; None for a count"""


def settle(files: Sequence[Reading]) -> None:
    """Give each reading its policies."""
    tasks = {environment for file in files for _, environment in file.combos}
    for file in files:
        if file.format in NAME_ENVIRONMENT:
            _place(file, tasks)
    renamed: dict[int, dict[Combo, str]] = {}
    for combo, shares in _shares(files).items():
        for share, policy in _told_apart(combo, shares):
            renamed.setdefault(id(share.file), {})[combo] = policy
    for file in files:
        if id(file) in renamed:
            file.rename(renamed[id(file)])


def _place(file: Reading, tasks: set[str]) -> None:
    """Take the policy from a folder further out, if its own folder has the name of another file's environment."""
    by_path = {combo for combo in file.combos if combo[0] == paths.policy(file.path, {combo[1]})}
    outward = paths.policy(file.path, tasks)
    if any(combo[0] != outward for combo in by_path):
        file.rename(dict.fromkeys(by_path, outward))


@dataclass(frozen=True)
class _Share:
    """The part of a file about one combo."""

    file: Reading
    path: PurePosixPath
    told: Mapping[Told, EpisodeRecord | Aggregate]

    @property
    def naming(self) -> bool:
        """Whether its records name the combo; then equal files are copies."""
        return self.file.format in NAME_COMBO

    def of_one_run(self, other: _Share, key: Told) -> bool:
        """Whether both may describe an episode of the same run."""
        alike = _said(self.told[key]) == _said(other.told[key])
        return alike and ((self.naming and other.naming) or self.beside(other))

    def beside(self, other: _Share) -> bool:
        """Whether two files in one folder are of one run: different kinds are, `seed1.log` and `seed2.log` are not."""
        kinds = {_DIGITS.sub("", share.path.name) for share in (self, other)}
        return self.path.parent == other.path.parent and len(kinds) > 1


def _said(one: EpisodeRecord | Aggregate) -> tuple[object, ...]:
    return content(one) if isinstance(one, EpisodeRecord) else (one.successes, one.episodes)


def _shares(files: Sequence[Reading]) -> dict[Combo, list[_Share]]:
    """Combo -> its parts, in the order of the files."""
    shares: defaultdict[Combo, list[_Share]] = defaultdict(list)
    for file in files:
        path = PurePosixPath(file.path, ALL if file.format == NAMED else "")
        by_combo: defaultdict[Combo, dict[Told, EpisodeRecord | Aggregate]] = defaultdict(dict)
        for one in file.entries:
            episode = one.episode if isinstance(one, EpisodeRecord) else None
            by_combo[one.combo].setdefault((one.attempt, episode), one)
        for combo, entries in by_combo.items():
            shares[combo].append(_Share(file, path, entries))
    return shares


def _clash(shares: Iterable[_Share]) -> bool:
    """Whether two of these files can't be of one run: both have the same episode, or one of them has only counts."""
    telling: dict[Told, _Share] = {}
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


def _told_apart(combo: Combo, shares: Sequence[_Share]) -> Iterator[tuple[_Share, str]]:
    """Name the policy of each run after the outermost folders that distinguish the runs, if there are several."""
    if not _clash(shares):
        return
    groups: dict[tuple[str, ...], list[_Share]] = {}
    for depth in range(1, max(len(share.path.parts) for share in shares) + 1):
        groups = {}
        for share in shares:
            groups.setdefault(share.path.parts[:depth], []).append(share)
        if not any(_clash(group) for group in groups.values()):
            break
    firsts = [group[0].file for group in groups.values()]
    labels = _labels(list(groups), {share.path.parts for share in shares})
    for group, label in zip(groups.values(), labels, strict=True):
        policy = label if combo[0] == UNNAMED else f"{combo[0]} ({label})"
        yield from ((share, policy) for share in group)
        own = group[0].file
        other = next(file for file in firsts if file is not own).path
        reason = f"of one combo with {other}, {combo_name(*combo)}, and not of one run: its policy is called"
        own.defect(0, f"{reason} {policy!r}")


def _labels(prefixes: Sequence[tuple[str, ...]], files: set[tuple[str, ...]]) -> list[str]:
    """The part of each prefix that the others don't share; without the suffix of a file, if that says nothing."""
    shared = {at for at in range(min(map(len, prefixes))) if len({prefix[at] for prefix in prefixes}) == 1}
    own = [PurePosixPath(*(part for at, part in enumerate(prefix) if at not in shared)) for prefix in prefixes]
    short = [str(path.with_suffix("") if prefix in files else path) for prefix, path in zip(prefixes, own, strict=True)]
    return short if len(set(short)) == len(short) else [str(path) for path in own]
