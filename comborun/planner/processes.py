"""One process for all environments of a policy: which sessions share it, and what each adds to its start. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from comborun.model.command import ENTRIES, ENVIRONMENTS, START_TIME, of_all, tree_word, without_entries, word
from comborun.model.judging import NO_PROGRESS
from comborun.model.work import grouped
from comborun.planner.scheduling import ranges
from comborun.text import clean, shortened

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from comborun.grid import AxisEntry, Grid, SettingKeys
    from comborun.model.command import FileText, JsonTree
    from comborun.model.plan import Session
    from comborun.model.resources import BashWord


def shared_files(settings: SettingKeys) -> tuple[dict[str, FileText], tuple[JsonTree, ...]]:
    """The files of a process, with a placeholder for the entries of its environments; and these entries."""
    taken: list[JsonTree] = []
    files = {name: without_entries(content, taken) for name, content in sorted(settings.files.items())}
    return files, tuple(taken)


def shared_values(values: Mapping[str, str]) -> dict[str, str]:
    """The plan-time placeholders that are the same for all environments of a process."""
    return {key: value for key, value in values.items() if key.partition(".")[0] not in {"environment", "session"}}


def added(
    session: Session, environment: AxisEntry, entries: Iterable[JsonTree], values: Mapping[str, str]
) -> Iterator[tuple[str, BashWord]]:
    """What an environment adds to the variables of its process: those that its command, variables or files use."""
    named = {ENVIRONMENTS: environment.name}
    named |= {f"{ENVIRONMENTS}.{key}": value for key, value in environment.attributes.items()}
    for placeholder, value in named.items():
        variable = START_TIME.get(placeholder) or of_all(placeholder)
        if any(variable in text for text in session.texts):
            yield variable, word(value.replace("{", "{{"), {})
    for number, entry in enumerate(entries, 1):
        yield of_all(f"{ENTRIES}{number}"), tree_word(entry, values, indent="\n  ")


def in_processes(sessions: Iterable[Session], grid: Grid) -> tuple[Session, ...]:
    """The sessions, those of one process with its name. `shards` cuts the list of environments, not their episodes."""
    settings = {combo.key: combo.settings for combo in grid.combos}
    found = list(sessions)
    names = {one.name for one in found}
    process: dict[str, Session] = {}
    sharing = [one for one in found if settings[one.policy, one.environment].together]
    for group in grouped(sharing, lambda one: (one.policy, one.results.base)).values():
        keys = settings[group[0].policy, group[0].environment]
        named = tuple(dict.fromkeys(name for one in group for name in names_in_rows(one)))
        parts = list(ranges(0, len(group), keys.shards if isinstance(keys.shards, int) else 1))
        for number, part in enumerate(parts, 1):
            name = f"together_{clean(group[0].policy)}" + (f"_seed{group[0].seed}" if keys.seeds else "")
            name += f"_part{number}" if len(parts) > 1 else ""
            while name in names:
                name += "_"
            names.add(name := shortened(name))
            for one in group[part.start : part.stop]:
                rules = one.results.replace(named=named)
                shared = replace(one, together=name, ranged=False, results=rules, progress=NO_PROGRESS)
                process[one.name] = shared  # its log counts the episodes of all of them
    return tuple(process.get(one.name, one) for one in found)


def names_in_rows(session: Session) -> tuple[str, ...]:
    """How rows name its environment."""
    return session.results.environment.values or (session.environment,)
