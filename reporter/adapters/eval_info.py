"""`eval_info.json`: per task a list of successes, or (an older generation) one object per episode.

Where the lists are missing, a percentage of so many episodes is an aggregate. The means beside the lists are compared
with them and not counted.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, BinaryIO

from comborun.reporter.adapters import RejectKind, places
from comborun.reporter.adapters.findings import Findings, named, refused
from comborun.reporter.adapters.json_text import DocumentError, document
from comborun.reporter.adapters.rates import RateError, agrees, count
from comborun.rules.episodes import integer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from comborun.reporter.adapters import Context, Reading

PER_TASK, PER_EPISODE = "per_task", "per_episode"
TOTALS = ("per_group", "overall", "aggregated")

_COLUMNS = {"sum_rewards": "sum_reward", "max_rewards": "max_reward", "video_paths": "video"}
"""lists with a value per episode, or per first episodes, and what one value is called"""


def read(stream: BinaryIO, context: Context) -> Reading:
    try:
        value = document(stream)
    except DocumentError as error:
        return refused(context, str(error), error.kind)
    if not isinstance(value, dict):
        return refused(context, "not a JSON object", RejectKind.NOT_A_RECORD)
    findings = Findings(context)
    if isinstance(value.get(PER_TASK), list):
        _take_tasks(findings, value[PER_TASK])
    if isinstance(value.get(PER_EPISODE), list):
        _take_episodes(findings, value[PER_EPISODE])
    totals = _totals(value)
    if findings.records:
        _compare(findings, totals)
    else:
        _take_totals(findings, totals)
    return findings.reading()


@dataclass
class _Numbering:
    """Tasks of one environment follow each other, each with room for as many episodes as the longest has."""

    stride: int
    tasks: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))

    def next_task(self, environment: str) -> int:
        """The index of its first episode."""
        self.tasks[environment] += 1
        return (self.tasks[environment] - 1) * self.stride


def _take_tasks(findings: Findings, tasks: list[Any]) -> None:
    numbering = _Numbering(max((len(_successes(task)) for task in tasks), default=0))
    for position, task in enumerate(tasks):
        group = task.get("task_group") if isinstance(task, dict) else None
        found = _named(findings, group)
        first = found.context.first + numbering.next_task(found.context.environment or "")
        if not isinstance(task, dict) or not _successes(task):
            findings.reject(0, RejectKind.NOT_A_RECORD, f"entry {position} of {PER_TASK} lists no successes")
            continue
        for index, fields in enumerate(_rows(task, found.context.rules.success)):
            found.take_episode(0, first + index, fields)


def _successes(task: Any) -> list[Any]:
    metrics = task.get("metrics") if isinstance(task, dict) else None
    successes = metrics.get("successes") if isinstance(metrics, dict) else None
    return successes if isinstance(successes, list) else []


def _rows(task: dict[str, Any], success: str) -> list[dict[str, Any]]:
    """The episodes of a task. Of videos there are fewer than episodes: the first ones have them."""
    number = {"task": str(task["task_id"])} if isinstance(task.get("task_id"), str | int) else {}
    same = {key: value for key, value in task.items() if key not in {"metrics", "task_id"}} | number
    rows = [{**same, success: value} for value in _successes(task)]
    columns: dict[str, Any] = task["metrics"]
    for name, values in columns.items():
        if name != "successes" and isinstance(values, list):
            for row, value in zip(rows, values, strict=False):
                row[_COLUMNS.get(name, name)] = value
    return rows


def _take_episodes(findings: Findings, episodes: list[Any]) -> None:
    found = _named(findings, None)
    for position, episode in enumerate(episodes):
        index = integer(episode.get("episode_ix")) if isinstance(episode, dict) else None
        if index is None or index < 0:
            findings.reject(0, RejectKind.NOT_A_RECORD, f"entry {position} of {PER_EPISODE} has no index episode_ix")
            continue
        success = episode.get("success")
        fields = {key: value for key, value in episode.items() if key not in {"episode_ix", "success"}}
        found.take_episode(0, found.context.first + index, {**fields, found.context.rules.success: success})


def _named(findings: Findings, group: object) -> Findings:
    """The same findings under the names of a group of tasks."""
    path = findings.context.path
    if isinstance(group, str) and group:
        policy, environment = places.policy(path, {group}), group
    else:
        policy, environment = places.combo(path)
    return replace(findings, context=named(findings.context, policy, environment))


def _totals(value: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Percentages with their numbers of episodes: by environment; all together only where they aren't split."""
    groups = value.get(TOTALS[0])
    if isinstance(groups, dict) and groups:
        return {group: total for group, total in groups.items() if isinstance(total, dict)}
    total = next((value[key] for key in TOTALS[1:] if isinstance(value.get(key), dict)), None)
    return {"": total} if total else {}


def _compare(findings: Findings, totals: Mapping[str, Mapping[str, Any]]) -> None:
    for group, total in totals.items():
        rate = total.get("pc_success")
        counted = [record.success for record in findings.records if _belongs(record.extra, group)]
        good = counted.count(True)
        if isinstance(rate, int | float) and counted and not agrees(str(rate), good, len(counted), scale=100):
            fraction = ": a fraction, where a percentage is meant" if agrees(str(rate), good, len(counted)) else ""
            findings.defect(0, f"pc_success of {rate} is not {good} of {len(counted)} as listed{fraction}")


def _belongs(extra: Mapping[str, object], group: str) -> bool:
    return not group or extra.get("task_group") == group


def _take_totals(findings: Findings, totals: Mapping[str, Mapping[str, Any]]) -> None:
    for group, total in totals.items():
        context = _named(findings, group).context
        try:
            counted = count(str(total.get("pc_success")), integer(total.get("n_episodes")) or 0, scale=100)
        except RateError as error:
            findings.reject(0, RejectKind.NOT_A_RECORD, str(error))
            continue
        findings.take_count(0, context, counted, {})
