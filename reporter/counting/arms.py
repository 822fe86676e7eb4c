"""What differed between the policies besides the policies: hosts, GPU models, seeds, and code that was not committed.
Pure."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from comborun.reporter.collected import Attempt, Collected

_CHECKPOINT, _ENDS = "checkpoints.", ".sha256_of_ends"
NAMED = 4
"""policies that a sentence names with what they had; of more, only that they differ"""


def differences(collected: Collected) -> tuple[str, ...]:
    """Sentences: a comparison of policies is also one of what they ran on."""
    return tuple(_sentences(collected))


def _sentences(collected: Collected) -> Iterator[str]:
    attempts = [
        (history.session.policy, attempt)
        for history in collected.sessions
        if history.session.unit == "episode"
        for attempt in history.attempts
        if attempt.begin
    ]
    models = _models(collected.provenance)
    hosts = _by_policy((policy, _host(attempt)) for policy, attempt in attempts)
    cards = _by_policy((policy, _cards(attempt, models)) for policy, attempt in attempts)
    yield from _unlike(hosts, "hosts")
    yield from _unlike(cards, "GPU models")
    yield from _unlike(_by_policy(_seeds(collected)), "seeds of the plan")
    yield from _same_files(collected.provenance)
    if changed := [_CODE[name] for name, value in collected.provenance.items() if _uncommitted(name, value)]:
        code = " and ".join(changed)
        yield f"The code is not that of a commit: {code} had uncommitted changes when the run was launched."


_CODE = {"uncommitted": "the grid's folder", "sync": "files that were shipped", "code": "the folder on the host"}


def _uncommitted(name: str, value: str) -> bool:
    if name == "uncommitted":
        return value == "true"
    return name in _CODE and '"uncommitted": true' in value


def _seeds(collected: Collected) -> Iterator[tuple[str, str]]:
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


def _host(attempt: Attempt) -> str:
    return attempt.begin.host if attempt.begin else ""


def _cards(attempt: Attempt, models: Mapping[str, str]) -> str:
    granted = attempt.begin.gpus.split(",") if attempt.begin else []
    return ", ".join(sorted({models[gpu.strip()] for gpu in granted if gpu.strip() in models}))


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
