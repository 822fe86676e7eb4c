"""Checks on what is done to the host before the first session starts: `sync`, `replaces`, `secrets`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from comborun.errors import Problem
from comborun.grid.draft import Draft

_EVERYBODYS = {"PATH", "HOME", "USER", "SHELL", "LANG", "TERM", "TMPDIR", "SCREENDIR", "TMUX_TMPDIR"}
"""a secret is taken out of the environment of everything but the commands"""


def launch_problems(draft: Draft) -> Iterator[Problem]:
    """Entries that lack something, that meet, or that contradict another key."""
    yield from _sync_problems(draft)
    yield from _secret_problems(draft)


def _sync_problems(draft: Draft) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for index, entry in enumerate(draft.file.sync):
        place = draft.source.place("sync", index)
        for key, value, example in (("from", entry.source, "./scripts"), ("to", entry.to, "~/my_project/scripts")):
            if value is None and "sync" not in draft.broken:
                yield draft.source.problem(place, f"an entry of `sync` without `{key}`", f"such as `{key}: {example}`")
        target = (entry.to or "").rstrip("/")
        if entry.to and not entry.to.endswith("/") and first.setdefault(target, index) != index:
            message = f"two entries of `sync` go to `{entry.to}`"
            hint = "give each a place of its own; a `/` at the end puts a file into that folder"
            yield draft.source.problem(draft.source.place("sync", index, "to"), message, hint)


def _secret_problems(draft: Draft) -> Iterator[Problem]:
    for name in _EVERYBODYS & set(draft.file.secrets):
        place = draft.source.key_place("secrets", name)
        yield draft.source.problem(place, f"{name} is no secret: sessions could not start without it", "remove it")
    layers = chain([((), draft.file)], ((("overrides", i), entry) for i, entry in enumerate(draft.file.overrides)))
    for path, layer in layers:
        for name in layer.variables:
            if name in draft.file.secrets:
                place = draft.source.key_place(*path, "variables", name)
                yield draft.source.problem(place, f"`{name}` stands under `secrets` too", "leave it in one of the two")
