"""What `shards` is refused for, and what it can't come to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from comborun.grid.checks.commands import some

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from comborun.errors import Problem
    from comborun.grid.combos import Combo
    from comborun.grid.draft import Draft, Path
    from comborun.grid.settings import Settings

_UNCUT = "none"
"""how a preset begins to say that its program can't be cut"""
_EXAMPLE = "--first {first_episode} --episodes {episodes}"


def shard_problems(draft: Draft, combos: Sequence[Combo]) -> Iterator[Problem]:
    """Combos that are to be cut and can't be."""
    if draft.broken:
        return
    cut = [combo for combo in combos if combo.settings.shards not in (None, 1)]
    if both := [combo.label for combo in cut if combo.settings.block]:
        hint = "`block` for comparisons that stop early, `shards` to fill the host"
        yield _at(draft, f"`shards` and `block` both cut {some(both)}: one of the two can", hint)
    preset = draft.about.shards if draft.about else ""
    unable = [combo.label for combo in cut if preset.startswith(_UNCUT) or not combo.settings.ranged]
    if unable:
        hint = f"its preset says: {preset}" if preset else f"hand it over, such as `{_EXAMPLE}`"
        yield _at(draft, f"`shards`: the command of {some(unable)} takes no range of episodes", hint)
    elif endless := [combo.label for combo in cut if not combo.settings.episodes]:
        yield _at(draft, f"`shards`: nothing says how many episodes {some(endless)} has", "such as `episodes: 100`")


def shard_warnings(draft: Draft, combos: Sequence[Combo]) -> Iterator[Problem]:
    """Combos with fewer episodes than they are to have shards."""
    few = [combo for combo in combos if (combo.settings.episodes or 0) < _wanted(combo.settings)]
    if few:
        most, named = max(combo.settings.episodes or 0 for combo in few), some(combo.label for combo in few)
        message = f"`shards: {few[0].settings.shards}` of {named}, of no more than {most} episodes: a session for each"
        yield _at(draft, message, "`auto` makes as many as pay")


def _wanted(settings: Settings) -> int:
    return settings.shards if isinstance(settings.shards, int) else 0


def _at(draft: Draft, message: str, hint: str) -> Problem:
    """Where the first `shards` of the file stands."""
    setters: Iterator[Path] = ((*path, "shards") for path, layer in draft.layers if "shards" in layer.model_fields_set)
    return draft.at_key(next(setters, ()), message, hint)
