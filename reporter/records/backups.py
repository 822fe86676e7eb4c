"""Files that are backups of others, as their names and rows say: `act_old/r.csv` beside `act/r.csv`. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import comb
from pathlib import PurePosixPath

from comborun.model.attempt import Verdict
from comborun.reporter.records.path_parts import stem_of
from comborun.reporter.records.reading import Reading
from comborun.rules.facts import Fact
from comborun.words import say

BACKUP = "backup_of_file"
SHARE = 0.9
"""least share of rows that are the same: a few may have been judged anew"""
FEWEST = 10
"""fewest rows that show it"""
CHANCE = 1_000_000
"""two evaluations that know nothing of each other have the same verdicts in fewer than one of so many cases"""
VALUES = 5
"""fewest different values of a measurement that tells as much"""
_BACKUP = re.compile(
    r"^cop(?:y|ies)[-_. ]+of[-_. ]+|[-_. (]+(?:old|backup|bak|cop(?:y|ies)|orig(?:inal)?|prev(?:ious)?)[-_. ]*\d*\)?$"
    r"|[-_. ]*\(\d+\)$",
    re.IGNORECASE,
)


def drop_backups(files: Sequence[Reading]) -> None:
    known = {_parts(file.path): file for file in files if file.records}
    for parts, file in known.items():
        other = known.get(tuple(_BACKUP.sub("", part) for part in parts))
        if other is None or other is file or not other.records or (alike := _alike(file, other)) is None:
            continue
        rows, file.records = len(file.records), []
        file.defect(0, say(Fact(BACKUP, file=other.path, same=alike, rows=rows)))


def _parts(path: str) -> tuple[str, ...]:
    pure = PurePosixPath(path)
    return (*pure.parts[:-1], stem_of(pure))


def _alike(file: Reading, other: Reading) -> int | None:
    """How many rows are the same; None if both may be evaluations of their own. Equal measurements show that they are
    not, though some rows were judged anew; verdicts alone show it only if all are equal."""
    by_path = bool(file.guessed or other.guessed)
    both = [{((by_path or one.combo), one.attempt, one.episode): one for one in some.records} for some in (file, other)]
    met = [(one, both[1][key]) for key, one in both[0].items() if key in both[1]]
    same = [a for a, b in met if (a.seed, a.metrics) == (b.seed, b.metrics)]
    most = max(map(len, both))
    if most < FEWEST or len(same) < SHARE * most:
        return None
    judged = sum(a.verdict is b.verdict for a, b in met)
    if any(len({one.metric(name) for one in same}) >= VALUES for name in same[0].metrics):
        return judged if judged >= SHARE * most else None
    successes = sum(a.verdict is Verdict.SUCCESS for a, _ in met)
    return judged if judged == len(met) and comb(len(met), successes) >= CHANCE else None
