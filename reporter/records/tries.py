"""Rows that say of which episode they are another try, such as `retry_of: 8`: they are of that episode. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from comborun.model.attempt import EpisodeRecord
from comborun.model.work import grouped
from comborun.reporter.records.reading import Reading
from comborun.rules.facts import Fact
from comborun.rules.results.fields import integer
from comborun.words import say

TRIED_AGAIN = "tries_of_other_rows"
_OF = re.compile(
    r"(?:is_?)?(?:a_)?(?:(?:retry|retries|retried|rerun|re_run|redo|redone|repeat|repeated)_?(?:of|from|for)|replaces)"
    r"_?(?:(?:episode|ep|trial|rollout)(?:_?(?:id|idx|index))?)?",
    re.IGNORECASE,
)


def settle_tries(files: Sequence[Reading]) -> None:
    """Give each such row the index of the episode that it names. Which of both counts is decided as for any episode
    with several records."""
    records = [one for file in files for one in file.records]
    fields = sorted(
        {name for of in {one.names for one in records} for some in of for name in some if _OF.fullmatch(name)}
    )
    indices = {combo: {one.episode for one in some} for combo, some in grouped(records, lambda one: one.combo).items()}
    for field in fields:
        former = {combo: _former(some, field) for combo, some in grouped(records, lambda one: one.combo).items()}
        former = {combo: of for combo, of in former.items() if of and {*of.values()} <= indices[combo]}
        for file in files:
            own = [(one, _first(one.episode, former.get(one.combo, {}))) for one in file.records]
            if tries := sum(one.episode != first for one, first in own):
                file.records = [replace(one, episode=first) if one.episode != first else one for one, first in own]
                file.defect(0, say(Fact(TRIED_AGAIN, field=field, rows=tries)))


def _former(records: Sequence[EpisodeRecord], field: str) -> dict[int, int]:
    """By the index of each row that is another try, the index of the row before it."""
    pairs = ((one.episode, integer(one.field(field))) for one in records)
    return {episode: of for episode, of in pairs if of is not None and of < episode}


def _first(episode: int, former: Mapping[int, int]) -> int:
    while episode in former:
        episode = former[episode]
    return episode
