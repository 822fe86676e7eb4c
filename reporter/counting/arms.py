"""Finds differences between policies, or between two runs, beside the compared ones: hosts, GPU models and drivers,
seeds, checkpoints, uncommitted code. Pure.
"""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from comborun.reporter.text import combo_name
from comborun.text import several

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from comborun.attempt import Begin
    from comborun.plan import Session
    from comborun.reporter.collected import Collected
    from comborun.work import Combo

_CHECKPOINT, _ENDS = "checkpoints.", ".sha256_of_ends"
NAMED = 4
"""policies that a sentence names with their values; of more it only says that they differ"""
LONG = 60
"""characters of a value"""
SHORT = 12
"""characters of a commit or digest"""


def differences(collected: Collected, seeds: Mapping[Combo, Mapping[int, int]]) -> tuple[str, ...]:
    """Sentences about different conditions, which a comparison of policies then includes. `seeds`: by episode, as
    recorded.
    """
    return tuple(_sentences(collected, seeds))


def _sentences(collected: Collected, seeds: Mapping[Combo, Mapping[int, int]]) -> Iterator[str]:
    attempts = [
        (history.session.policy, attempt.begin)
        for history in collected.sessions
        if history.session.unit == "episode"
        for attempt in history.attempts
        if attempt.begin
    ]
    models = _models(collected.provenance)
    hosts = ((policy, begin.host) for policy, begin in attempts)
    cards = ((policy, begin.gpu_models or _cards(begin, models)) for policy, begin in attempts)
    drivers = ((policy, begin.driver) for policy, begin in attempts)
    code = _code_of_policies(collected)
    for what, found in (("hosts", hosts), ("GPU models", cards), ("GPU drivers", drivers), ("code", code)):
        yield from _unlike(_by_policy(found), what)
    yield from _unlike(_by_policy(_planned_seeds(collected)), "seeds of the plan")
    yield from _other_seeds(collected, seeds)
    yield from _same_files(collected.provenance)
    yield from _uncommitted(collected.provenance, "the run")


def _other_seeds(collected: Collected, seeds: Mapping[Combo, Mapping[int, int]]) -> Iterator[str]:
    """Combos whose records have other seeds than the plan gave: S in all episodes, or S + episode."""
    found: list[str] = []
    for combo, histories in collected.by_combo.items():
        recorded = seeds.get(combo, {})
        wrong = next((one for session in histories for one in _not_given(session.session, recorded)), None)
        if wrong is not None:
            found.append(f"{combo_name(*combo)}, episode {wrong} has the seed {recorded[wrong]}")
    if found:
        planned = several(len(found), "combo")
        yield f"The records of {planned} hold other seeds than the plan gave their program: {found[0]}."


def _not_given(session: Session, recorded: Mapping[int, int]) -> Iterator[int]:
    """Episodes of a session with another seed."""
    seed, base, planned = session.seed, session.results.base, session.episodes
    if session.unit != "episode" or seed is None:
        return
    for episode in planned if session.count <= len(recorded) else recorded:
        other = recorded.get(episode, seed) - seed
        if other and other not in (episode, episode - base) and episode in planned:
            yield episode


# -- two runs ---------------------------------------------------------------------------------------------------------

_OF_RUNS = {
    "host.hostname": "host",
    "host.cards": "GPU models",
    "host.driver": "GPU driver",
    "commit": "commit of the grid",
    "code": "code on the host",
    "sync": "files that were shipped",
}


def between_runs(before: Collected, after: Collected) -> Iterator[str]:
    """Differences in the provenance of two runs, apart from their policies."""
    for run in (before, after):
        yield from _uncommitted(run.provenance, run.name)
    yield from _not_the_same(_versions(before.provenance), _versions(after.provenance))


def _not_the_same(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[str]:
    for name in dict.fromkeys((*_OF_RUNS, *sorted(before.keys() & after.keys()))):
        checkpoint = name.startswith(_CHECKPOINT) and name.endswith(_ENDS)
        words = f"checkpoint of {name[len(_CHECKPOINT) : -len(_ENDS)]}" if checkpoint else _OF_RUNS.get(name, "")
        then, now = before.get(name, ""), after.get(name, "")
        if words and then and now and then != now:
            yield f"Not the same in both runs: the {words} ({then[:LONG]} before, {now[:LONG]} after)."


_CODE = {"uncommitted": "the grid's folder", "sync": "files that were shipped", "code": "the folder on the host"}


def _uncommitted(provenance: Mapping[str, str], run: str) -> Iterator[str]:
    said = {"uncommitted": "true"}
    changed = [_CODE[name] for name in _CODE if said.get(name, '"uncommitted": true') in provenance.get(name, "")]
    if changed:
        code = " and ".join(changed)
        yield f"The code is not that of a commit: {code} had uncommitted changes when {run} was launched."


def _versions(provenance: Mapping[str, str]) -> dict[str, str]:
    """The provenance reduced to commits of folders and digests of shipped files."""
    code = ", ".join(f"{one['commit'][:SHORT]} in {one['folder']}" for one in _entries(provenance, "code"))
    sync = ", ".join(f"{one['sha256'][:SHORT]} of {one['from']}" for one in _entries(provenance, "sync"))
    return {**provenance, "code": code, "sync": sync}


def _entries(provenance: Mapping[str, str], name: str) -> list[dict[str, Any]]:
    """The entries; empty if the manifest has another form."""
    needed = {"code": {"folder", "commit"}, "sync": {"from", "sha256"}}[name]
    try:
        found = json.loads(provenance.get(name, "[]"))
        return [one for one in found if all(isinstance(one[key], str) for key in needed)]
    except (ValueError, TypeError, KeyError):
        return []


def _code_of_policies(collected: Collected) -> Iterator[tuple[str, str]]:
    """The commit of each policy's folder, if it is its own repository."""
    folders = _entries(collected.provenance, "code")
    for history in collected.sessions:
        workdir = (history.session.workdir or "").removeprefix("~")
        for one in folders:
            if workdir and one["folder"].endswith(workdir):
                changed = " with uncommitted changes" if one.get("uncommitted") else ""
                yield history.session.policy, f"{one['commit'][:SHORT]}{changed}"


def _planned_seeds(collected: Collected) -> Iterator[tuple[str, str]]:
    for history in collected.sessions:
        if history.session.unit == "episode" and history.session.seed is not None:
            yield history.session.policy, str(history.session.seed)


def _same_files(provenance: Mapping[str, str]) -> Iterator[str]:
    """Policies with the same files: comparing them compares a policy with itself."""
    owners: defaultdict[str, list[str]] = defaultdict(list)
    for name, value in provenance.items():
        if name.startswith(_CHECKPOINT) and name.endswith(_ENDS):
            owners[value].append(name[len(_CHECKPOINT) : -len(_ENDS)])
    for policies in owners.values():
        if len(policies) > 1:
            yield f"{', '.join(policies[:NAMED])} have the same checkpoint, as far as its first and last MiB tell."


def _cards(begin: Begin, models: Mapping[str, str]) -> str:
    granted = {gpu.strip() for gpu in begin.gpus.split(",")}
    return ", ".join(sorted({models[gpu] for gpu in granted & models.keys()}))


def _models(provenance: Mapping[str, str]) -> dict[str, str]:
    """The model of each GPU by its index."""
    try:
        indexes, names = (json.loads(provenance.get(f"host.{key}", "[]")) for key in ("gpus", "cards"))
        return {str(index): str(name) for index, name in zip(indexes, names, strict=False)}
    except (ValueError, TypeError):
        return {}


def _by_policy(found: Iterable[tuple[str, str]]) -> dict[str, set[str]]:
    values: defaultdict[str, set[str]] = defaultdict(set)
    for policy, value in found:
        if value:
            values[policy].add(value)
    return dict(values)


def _unlike(values: Mapping[str, set[str]], what: str) -> Iterator[str]:
    if len({frozenset(found) for found in values.values()}) < 2:
        return
    who = "; ".join(f"{policy} on {', '.join(sorted(found))}" for policy, found in values.items())
    named = f": {who}" if len(values) <= NAMED else ""
    yield f"Policies did not run on the same {what}{named}. A difference between them may come from that."
