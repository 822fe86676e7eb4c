"""What an attempt of a trial has left: `left ATTEMPT LINES` answers with JSON."""

from __future__ import annotations

import os
from itertools import islice

from comborun.host.record import judging
from comborun.host.verb_errors import answered
from comborun.host.verbs.logs import start
from comborun.rules import globs
from comborun.rules.names import AttemptLayout
from comborun.rules.results import videos

_BLOCK = 1 << 16
_FILES_MOST = 1000


def main(arguments: list[str]) -> int:
    return answered("left", lambda: left(*arguments))


def left(attempt: str, lines: str) -> dict[str, object]:
    """The end of an attempt's log, its files with their sizes, the name of the seed in its rows, and why videos are not
    shown beside their episodes.
    """
    at = AttemptLayout(attempt)
    with open(at.log, "rb") as file:
        file.seek(max(start(at.log, lines), os.path.getsize(at.log) - _BLOCK))
        text = file.read(_BLOCK).decode("utf-8", "replace")
    found = islice(globs.matching(at.output, "**"), _FILES_MOST)
    sizes = [(path, os.lstat(f"{at.output}/{path}").st_size) for path in sorted(found)]
    rules = judging.rules_of(at)
    rows = judging.samples(at, rules)
    filmed = videos.told([path for path, _ in sizes], globs.found(at.output, rules.results.videos), rows)
    return {
        "log": text,
        "files": sizes,
        "seed": judging.seed_keys(rows, rules).get("seed", ""),
        "videos": filmed.as_data() if filmed else None,
    }
