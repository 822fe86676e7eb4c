"""What a run whose comparisons may stop early has decided so far: from its directory, or from a copy of it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import TYPE_CHECKING

from comborun.reporter.collect import collect_run
from comborun.reporter.comparing.pairing import arm
from comborun.reporter.comparing.stopping import not_needed, settled, standings, with_last_words
from comborun.reporter.merge import merge
from comborun.work import episodes_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from comborun.reporter.collected import Collected
    from comborun.reporter.comparing.pairing import Arm
    from comborun.reporter.comparing.stopping import Standing
    from comborun.reporter.merge import MergedCombo
    from comborun.work import Combo


@dataclass(frozen=True)
class Decided:
    """Where the comparisons of a run stand, and which of its sessions need not begin any more."""

    standings: tuple[Standing, ...]
    not_needed: tuple[str, ...]

    def lines(self) -> str:
        """A JSON object on a line for each comparison that is over: the same for whoever makes it."""
        told = (standing for standing in self.standings if standing.final)
        return "".join(json.dumps(_line(standing), ensure_ascii=False) + "\n" for standing in told)


def decide_run(directory: Path, unread: Mapping[PurePosixPath, str] = MappingProxyType({})) -> Decided:
    """Of a run without such comparisons: nothing."""
    collected = collect_run(directory, unread)
    if collected.stop_early is None:
        return Decided((), ())
    found = standings(collected.stop_early, last_arms(collected, merged_of(collected)))
    sessions = (history.session for history in collected.sessions)
    return Decided(found, not_needed(collected.stop_early, found, sessions))


def last_arms(collected: Collected, merged: Mapping[Combo, MergedCombo]) -> dict[Combo, Arm]:
    """The episodes of every combo, without errored ones that may still be run again."""
    histories = collected.by_combo
    return {
        combo: with_last_words(
            arm(combo[0], found.accepted, collected.unpaired.get(combo, "")),
            settled(histories.get(combo, ()), run_over=bool(collected.done)),
        )
        for combo, found in merged.items()
    }


def merged_of(collected: Collected) -> dict[Combo, MergedCombo]:
    """All of its planned episodes, needed or not."""
    planned = {
        combo: episodes_of(one.session for one in histories) or None for combo, histories in collected.by_combo.items()
    }
    return {combo.key: combo for combo in merge(collected.records, planned)}


def _line(standing: Standing) -> dict[str, object]:
    planned = standing.planned
    return {
        "environment": planned.environment,
        "a": planned.a,
        "b": planned.b,
        "better": standing.winner,
        "pairs": standing.pairs,
        "n_max": planned.n_max,
    }
