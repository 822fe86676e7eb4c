"""Policies that are files on the host: `policies: {glob: ~/ckpt/*.pt}`. The plan fixes which files these are."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import PurePosixPath

from comborun.errors import UserError
from comborun.text import clean, natural

CHECKPOINT = "checkpoint"
"""the attribute that holds the path"""
_WILD = re.compile(r"[*?\[]")


@dataclass(frozen=True)
class PolicyGlob:
    patterns: tuple[str, ...]
    """absolute or below ~/ of the host, as in bash; `**` goes through folders"""
    exclude: tuple[str, ...] = ()
    """patterns of names that are not policies"""
    line: int = 0
    column: int = 0
    """its place in the grid file"""

    def __str__(self) -> str:
        return ", ".join(self.patterns)


@dataclass(frozen=True)
class MatchedFile:
    pattern: str
    path: str
    """below ~/ or absolute, as the pattern"""
    folder: bool = False


@dataclass(frozen=True)
class PolicyFiles:
    """The files that matched when the plan was made; a resumed run keeps them."""

    patterns: tuple[str, ...]
    exclude: tuple[str, ...]
    found: tuple[tuple[str, str], ...]
    """policy and path"""

    def like(self, other: PolicyFiles) -> bool:
        """Whether both have the same patterns."""
        return (self.patterns, self.exclude) == (other.patterns, other.exclude)


def named_policies(matches: tuple[MatchedFile, ...]) -> tuple[tuple[str, str], ...]:
    """Name and path of each file, sorted with step_9 before step_10.

    The name is what the pattern's wildcards match, without the suffix: `~/ckpt/*.pt` gives `step_9`, and
    `~/runs/*/model.pt` the folder's name. Files with the same name keep their suffix. Raises UserError for a name
    without a letter or digit, or if two are still the same.
    """
    files = {match.path: match for match in reversed(matches)}  # two patterns may find the same file
    ordered = sorted(files.values(), key=lambda match: natural(match.path))
    short = [_name(match, whole=False) for match in ordered]
    often = Counter(short)
    names = [_name(match, whole=True) if often[name] > 1 else name for match, name in zip(ordered, short, strict=True)]
    shared = [match.path for match, name in zip(ordered, names, strict=True) if names.count(name) > 1]
    if shared:
        hint = "name the folders with a wildcard, as in ~/runs/*/model.pt, or exclude one of them"
        raise UserError(f"{' and '.join(shared[:2])} would be one policy", hint)
    return tuple((name, match.path) for name, match in zip(names, ordered, strict=True))


def _name(match: MatchedFile, *, whole: bool) -> str:
    path, pattern = PurePosixPath(match.path), PurePosixPath(match.pattern)
    last = path.name if match.folder or whole else path.stem
    return "-".join(clean(part) for part in (*_wild(pattern, path), last) if part)


def _wild(pattern: PurePosixPath, path: PurePosixPath) -> tuple[str, ...]:
    """The folders of a path that match a wildcard."""
    fixed = next((index for index, part in enumerate(pattern.parts) if _WILD.search(part)), len(pattern.parts) - 1)
    if "**" in pattern.parts:
        return path.parts[fixed:-1]
    pairs = zip(pattern.parts[:-1], path.parts[:-1], strict=False)
    return tuple(part for wanted, part in pairs if _WILD.search(wanted))
