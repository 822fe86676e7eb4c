"""Checks on `block` and `stop_early`: what can't be cut into ranges, and what can't be compared pair by pair."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from comborun.command import placeholders
from comborun.grid.checks.commands import some
from comborun.grid.combos import MOST_COMBOS, Combo
from comborun.grid.settings import Settings
from comborun.text import did_you_mean

if TYPE_CHECKING:
    from comborun.errors import Problem
    from comborun.grid.draft import Draft
    from comborun.grid.keys.stopping import StopKeys

MANY_STARTS = 3
"""sessions of one combo; more often than that a simulator's start is worth a word"""


def stopping_problems(draft: Draft, combos: tuple[Combo, ...]) -> Iterator[Problem]:
    """Blocks that no command can be told, and comparisons that can't be stopped early."""
    if draft.broken:
        return
    yield from _block_problems(draft, combos)
    stop = draft.file.stop_early
    if stop is None:
        return
    if draft.about and draft.about.unpaired:
        message = f"`stop_early` compares pairs of episodes, and there are none: {draft.about.unpaired}"
        yield draft.at_key(("stop_early",), message, "leave it out: all episodes run, and are compared without pairs")
    found = [*_stranger_problems(draft, stop), *_pair_problems(draft, stop)]
    yield from found
    compared = [combo for combo in combos if _compared(stop, combo)]
    if not found and not _meeting(stop, compared):
        yield draft.at_key(("stop_early",), "`stop_early`: no two policies to compare meet in an environment", "")
    for need, message, hint in _NEEDS:
        if lacking := [combo.label for combo in compared if not need(combo.settings)]:
            yield draft.at_key(("stop_early",), f"`stop_early` needs {message}: not so for {some(lacking)}", hint)


def stopping_warnings(draft: Draft, combos: tuple[Combo, ...]) -> Iterator[Problem]:
    """What blocks cost."""
    starts = [_sessions(combo.settings) for combo in combos]
    if max(starts, default=1) > MANY_STARTS:
        message = f"`block`: {sum(starts)} sessions for {len(combos)} combos, and each starts its simulator anew"
        hint = "choose a block that runs ten times as long as the program takes to start; smaller ones stop sooner"
        yield draft.source.problem(draft.source.key_place("block"), message, hint)


def _block_problems(draft: Draft, combos: Sequence[Combo]) -> Iterator[Problem]:
    cut = [combo for combo in combos if _sessions(combo.settings) > 1]
    if unable := [combo.label for combo in cut if not combo.settings.ranged]:
        message = f"`block`: the command of {some(unable)} takes no range of episodes"
        hint = "hand it over, such as `--first {first_episode} --episodes {episodes}`"
        yield draft.at_key(("block",), message, hint)
    if (count := sum(_sessions(combo.settings) for combo in combos)) > MOST_COMBOS:
        message = f"`block`: {count:,} sessions are more than comborun handles ({MOST_COMBOS:,})"
        yield draft.at_key(("block",), message, "make the blocks larger")


def _sessions(settings: Settings) -> int:
    return -(-(settings.episodes or 1) // (settings.block or settings.episodes or 1))


def _takes_seed(settings: Settings) -> bool:
    return "seed" in placeholders(settings.told)


_NEEDS: tuple[tuple[Callable[[Settings], bool], str, str], ...] = (
    (lambda settings: bool(settings.episodes), "a number of episodes", "such as `episodes: 100`"),
    (lambda settings: settings.results.told, "records", "say in `results` where they are"),
    (
        lambda settings: settings.ranged,
        "a program that takes a range of episodes",
        "hand it over, such as `--first {first_episode} --episodes {episodes}`",
    ),
    (
        _takes_seed,
        "a program that takes a {seed}, and starts an episode of one index the same for every policy",
        "hand it over, such as `--seed {seed}`; its records have to say each episode's seed",
    ),
    (
        lambda settings: settings.block is not None,
        "`block`, since only sessions that have not begun can be left out",
        "such as `block: 10`: the episodes of one session",
    ),
)


def _stranger_problems(draft: Draft, stop: StopKeys) -> Iterator[Problem]:
    policies = [entry.name for entry in draft.file.policies]
    environments = [entry.name for entry in draft.file.environments]
    for index, pair in enumerate(stop.comparisons or ()):
        for side, name in enumerate(pair):
            if name not in policies:
                place = draft.source.place("stop_early", "comparisons", index, side)
                yield draft.source.problem(place, f"there is no policy `{name}`", did_you_mean(name, policies))
    for name in stop.environments or ():
        if name not in environments:
            place = draft.source.place("stop_early", "environments")
            yield draft.source.problem(place, f"there is no environment `{name}`", did_you_mean(name, environments))


def _pair_problems(draft: Draft, stop: StopKeys) -> Iterator[Problem]:
    seen: set[frozenset[str]] = set()
    for index, (a, b) in enumerate(stop.comparisons or ()):
        place = draft.source.place("stop_early", "comparisons", index)
        if a == b:
            yield draft.source.problem(place, f"`{a}` is compared with itself", "name two policies")
        elif frozenset((a, b)) in seen:
            yield draft.source.problem(place, f"`{a}` and `{b}` are compared twice", "each pair counts once")
        seen.add(frozenset((a, b)))


def _compared(stop: StopKeys, combo: Combo) -> bool:
    named = stop.comparisons is None or any(combo.policy.name in pair for pair in stop.comparisons)
    return named and (stop.environments is None or combo.environment.name in stop.environments)


def _meeting(stop: StopKeys, combos: Sequence[Combo]) -> bool:
    """Whether any comparison has both of its policies in one environment."""
    found = {(combo.policy.name, combo.environment.name) for combo in combos}
    environments = {environment for _, environment in found}
    if stop.comparisons is None:
        return len(found) > len(environments)
    return any((a, one) in found and (b, one) in found for one in environments for a, b in stop.comparisons)
