"""What differed between policies, or between two runs, besides what is compared: hosts, GPU models and drivers, seeds,
checkpoints, and code that was not committed. Pure."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING

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
"""policies that a sentence names with what they had; of more, only that they differ"""
LONG = 60
"""signs of a value"""


def differences(collected: Collected, seeds: Mapping[Combo, Mapping[int, int]]) -> tuple[str, ...]:
    """Sentences: a comparison of policies is also one of what they ran on. `seeds`: by episode, as recorded."""
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
    for what, found in (("hosts", hosts), ("GPU models", cards), ("GPU drivers", drivers)):
        yield from _unlike(_by_policy(found), what)
    yield from _unlike(_by_policy(_planned_seeds(collected)), "seeds of the plan")
    yield from _other_seeds(collected, seeds)
    yield from _same_files(collected.provenance)
    if changed := [_CODE[name] for name, value in collected.provenance.items() if _uncommitted(name, value)]:
        code = " and ".join(changed)
        yield f"The code is not that of a commit: {code} had uncommitted changes when the run was launched."


def _other_seeds(collected: Collected, seeds: Mapping[Combo, Mapping[int, int]]) -> Iterator[str]:
    """Combos whose records hold other seeds than the plan gave: S in all episodes, or S + episode."""
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
    seed, base = session.seed, session.results.base
    if session.unit != "episode" or seed is None:
        return
    for episode in session.episodes if session.count <= len(recorded) else recorded:
        possible = {seed, seed + episode, seed + episode - base}
        if episode in session.episodes and recorded.get(episode, seed) not in possible:
            yield episode


# -- two runs ---------------------------------------------------------------------------------------------------------

_OF_RUNS = {
    "host.hostname": "host",
    "host.cards": "GPU models",
    "host.driver": "GPU driver",
    "commit": "commit of the grid",
}


def between_runs(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[str]:
    """What the provenance of two runs says of more than their policies."""
    for name in dict.fromkeys((*_OF_RUNS, *sorted(before.keys() & after.keys()))):
        checkpoint = name.startswith(_CHECKPOINT) and name.endswith(_ENDS)
        words = f"checkpoint of {name[len(_CHECKPOINT) : -len(_ENDS)]}" if checkpoint else _OF_RUNS.get(name, "")
        then, now = before.get(name, ""), after.get(name, "")
        if words and then and now and then != now:
            yield f"Not the same in both runs: the {words} ({then[:LONG]} before, {now[:LONG]} after)."


_CODE = {"uncommitted": "the grid's folder", "sync": "files that were shipped", "code": "the folder on the host"}


def _uncommitted(name: str, value: str) -> bool:
    if name == "uncommitted":
        return value == "true"
    return name in _CODE and '"uncommitted": true' in value


def _planned_seeds(collected: Collected) -> Iterator[tuple[str, str]]:
    for history in collected.sessions:
        if history.session.unit == "episode" and history.session.seed is not None:
            yield history.session.policy, str(history.session.seed)


def _same_files(provenance: Mapping[str, str]) -> Iterator[str]:
    """Policies whose files can't be told apart: a comparison of them is one of a policy with itself."""
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
