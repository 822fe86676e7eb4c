"""Checks `hosts`: what several hosts can't do together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from comborun.grid.keys.grid_file import GridFile

if TYPE_CHECKING:
    from comborun.errors import Problem
    from comborun.grid.draft import Draft, Path


_REFUSED: tuple[tuple[Path, Callable[[GridFile], object], str, str], ...] = (
    (
        ("stop_early",),
        lambda it: it.stop_early,
        "`stop_early` with several hosts: it needs the records of all of them at once",
        "leave it out, or give one `host`",
    ),
    (
        ("after",),
        lambda it: it.after,
        "`after` with several hosts: it runs when all has ended, and each host only knows its own end",
        "leave it out, and run it yourself; or give one `host`",
    ),
    (
        ("limits", "fail_fast"),
        lambda it: any(it.limits.fail_fast),
        "`fail_fast` with several hosts: it counts the failures of all sessions, and each host only knows its own",
        "leave it out: `breaker` closes a GPU or a host by itself",
    ),
    (
        ("notify",),
        lambda it: it.notify and "finished" in it.notify.on,
        "`notify` with several hosts: it would tell an end for each of them, and none for all",
        "`on: [failed, stalled, host]`: each host tells of its own sessions",
    ),
)


def refused_together(file: GridFile) -> Iterator[tuple[Path, str, str]]:
    """The keys of a grid that several hosts can't follow, each with the reason and what to do instead."""
    return ((path, why, hint) for path, asked, why, hint in _REFUSED if asked(file))


def hosts_problems(draft: Draft) -> Iterator[Problem]:
    entries = draft.file.hosts
    if "hosts" in draft.broken or not entries:
        return
    if draft.file.host:
        yield draft.at_key(("host",), "`host` and `hosts`", "leave one of them out")
    if len(entries) == 1:
        yield draft.at_key(("hosts",), "`hosts` has one entry", f"`host: {entries[0].host}`")
    for index, entry in enumerate(entries):
        if not entry.host:
            yield draft.at_value(("hosts", index), "an entry of `hosts` without `host`", "such as `host: box2`")
    for host, times in Counter(entry.host for entry in entries).items():
        if host and times > 1:
            yield draft.at_key(("hosts",), f"`hosts` names {host} {times} times", "name each host once")
    for path, why, hint in refused_together(draft.file):
        yield draft.at_key(path, why, hint)
