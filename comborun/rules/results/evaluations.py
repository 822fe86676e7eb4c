"""Reads JSON documents of particular programs: one for each episode, a list of an episode's steps, an evaluation with
all its tasks, statistics of rollouts. Pure.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from itertools import count

from comborun.rules.facts import Fact
from comborun.rules.results.episodes import LIST_LAST_FOLDER, PER_FILE_NAME, decode_whole, deep
from comborun.rules.results.fields import MISSING, NO_RECORD, TEXT_MOST, TORN, UNREADABLE, RefusedError, integer
from comborun.rules.results.one_row import verdict_of
from comborun.rules.results.rates import Count, agrees, total
from comborun.rules.results.readers import NOTHING, indexed, stating
from comborun.rules.results.stated_counts import counted, entries
from comborun.rules.results.unfinished import refuse_unfinished

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator, Mapping

    from comborun.rules.results.readers import Entry, Whole

    Row = dict[str, Any]

STEPS_AT_MOST = 50
"""the program that writes lists of steps ends an episode after so many, and does not mark it as done"""
SUCCESS = "task_success"
"""the verdict of an episode's document and of a step, unless the row has the field that the grid names"""
PER_TASK, PER_EPISODE, GROUP = "per_task", "per_episode", "task_group"
_COLUMNS = {"sum_rewards": "sum_reward", "max_rewards": "max_reward", "video_paths": "video"}
"""lists with one value per episode, perhaps only of the first ones, and the name of one value"""
_DEPTH = 4
_BETWEEN = re.compile(r"\s*,?\s*")
_decoder = json.JSONDecoder()


def per_file(file: Whole) -> Iterator[Entry]:
    """One file per episode, with the episode's number in its name: `episode_12_final_res.json`."""
    index = _number(PER_FILE_NAME, file.path.rpartition("/")[2])
    yield 0, _episode(file, _object(file), index), None, None


def list_last(file: Whole) -> Iterator[Entry]:
    """One folder per episode with a list of its steps: `episode_12/cosmos_log.json`. The last step with a verdict
    decides.

    The file is rewritten twice per step, so it can be cut off anywhere. An episode that has not finished is missing,
    not failed: its last step only says how far it got.
    """
    index = _number(LIST_LAST_FOLDER, file.path.rpartition("/")[0].rpartition("/")[2])
    values, fault = _elements(file.text)
    steps = [value for value in values if isinstance(value, dict)]
    if len(steps) < STEPS_AT_MOST and not (steps and steps[-1].get("done") is True):
        raise RefusedError(TORN, "episode_not_finished", steps=len(steps), fault=fault)
    yield 0, _episode(file, {**_last_told(steps), "steps": len(steps)}, index), None, None
    if fault:
        yield 0, NOTHING, Fact("fault_behind_step", fault=fault, steps=len(steps)), None
    if len(steps) < len(values):
        yield 0, NOTHING, Fact("entries_no_steps", entries=len(values) - len(steps)), None


def evaluation(file: Whole) -> Iterator[Entry]:
    """`eval_info.json`: for each task a list of successes, or (older) one object per episode.

    Without the lists, a percentage of so many episodes is an aggregate. Percentages beside the lists are only compared
    with them.
    """
    whole = _object(file)
    found = list(_evaluations(whole))
    taken: Counter[str] = Counter()
    told: list[Entry] = []
    parts = 0
    for name, value, inside in found:
        apart = len(found) > 1 and file.identity.policy is None  # several evaluations of one file: of several policies
        own = {file.identity.policy_field.name: name} if apart and name else {}
        own.update({GROUP: name} if len(found) > 1 and name else {})
        tasks = list(_tasks(file, value.get(PER_TASK), Counter() if apart else taken))
        episodes = list(_episodes(file, value.get(PER_EPISODE)))
        listed = [
            (line, {**own, **row} if isinstance(row, dict) else row, remark, at)
            for line, row, remark, at in (*tasks, *episodes)
        ]
        rows, before = _rows(listed), _rows(told)
        if not (inside and rows and _copies(file, rows, before, name)):
            parts += bool(tasks) + bool(episodes)
            told += listed
        for group, said in _totals(value).items():
            if rows:
                told += _compared(file, rows, group, said)
            elif not inside:
                told += stating(counted(said).of(next(iter(_named(file, group).values()), None), {}))
            elif before:
                told += _compared(file, before, group or name, said)
    counts = [one for _, one, _, _ in told if isinstance(one, Count)]
    rows = _rows(told)
    refuse_unfinished(whole, file.identity, len(rows), total(counts) if counts and not rows else None)
    yield from _one_after_another(file, told) if parts > 1 else told


def _rows(told: list[Entry]) -> list[Row]:
    return [row for _, row, _, _ in told if isinstance(row, dict)]


def _copies(file: Whole, rows: list[Row], around: list[Row], name: str) -> bool:
    """Whether the rows of an evaluation within another one are those of its group, or all that are planned, again."""
    known = [row for row in around if row.get(GROUP) == name]
    known = known or (around if len(around) == file.identity.planned else [])
    first, second = ([verdict_of(row, file.identity.success)[0] for row in some] for some in (rows, known))
    return first == second


def _one_after_another(file: Whole, told: list[Entry]) -> Iterator[Entry]:
    """The entries of several lists. If they are all planned episodes together, but each numbers its own, they are
    numbered as they come."""
    numbers = [order for _, row, _, order in told if isinstance(row, dict)]
    planned = file.identity.planned
    ours = len(numbers) == planned and {*numbers} != {*range(planned)} and not file.identity.asks_environment
    places = count()
    for line, row, remark, order in told:
        yield line, row, remark, next(places) if ours and isinstance(row, dict) else order


def _evaluations(
    value: Any, name: str = "", depth: int = 0, *, inside: bool = False
) -> Iterator[tuple[str, Row, bool]]:
    """The evaluations in a document, each with the key under which it lies, and whether it lies in another one."""
    if depth > _DEPTH or not isinstance(value, (dict, list)):
        return
    lists = isinstance(value, dict) and any(isinstance(value.get(key), list) for key in (PER_TASK, PER_EPISODE))
    if isinstance(value, dict) and (lists or _totals(value)):
        yield name, value, inside
        inside = True
    for key, entry in entries(value):
        if not (lists and key in (PER_TASK, PER_EPISODE)):
            own = f"{name}{key}" if isinstance(value, list) else key
            yield from _evaluations(entry, own, depth + 1, inside=inside)


def _number(pattern: re.Pattern[str], name: str) -> int:
    """The index of the episode whose name holds its number, counted from 1."""
    found = pattern.fullmatch(name)
    if not found or not int(found.group("number")):
        raise RefusedError(NO_RECORD, "name_without_number", name=name[:TEXT_MOST])
    return int(found.group("number")) - 1


def _episode(file: Whole, value: Row, index: int) -> Row:
    """The row of one episode. The verdict's field is the grid's own, if the document has it."""
    success = file.identity.success
    held = success.word or success.find(value) is not MISSING
    file.identity = file.identity.by(success=success if held else SUCCESS, episode="episode")
    return {**indexed(value, file.identity), "episode": index}


def _last_told(steps: list[Row]) -> Row:
    """The `info` of the last step that has a verdict. The very last step may not be complete."""
    infos = (info for info in (step.get("info") for step in reversed(steps)) if isinstance(info, dict))
    return next((info for info in infos if SUCCESS in info), {})


def _tasks(file: Whole, tasks: object, taken: Counter[str]) -> Iterator[Entry]:
    """Numbers the episodes of an environment task by task; each task has room for as many as the longest one."""
    if not isinstance(tasks, list):
        return
    stride = max((len(_successes(task)) for task in tasks), default=0)
    for position, task in enumerate(tasks):
        named = _named(file, task.get(GROUP) if isinstance(task, dict) else None)
        rows = [{**named, **row} for row in _task_rows(task, file.identity.verdict_key)] if _successes(task) else []
        place = next(iter(named.values()), "") or file.identity.environment or ""
        if rows and file.identity.rules.named:  # a task of the group may be an environment by itself
            place = str(file.identity.environment_field.find(rows[0]))
        first, taken[place] = taken[place] * stride, taken[place] + 1
        if not rows:
            yield 0, RefusedError(NO_RECORD, "task_without_successes", entry=position), None, None
        for index, row in enumerate(rows, first):
            yield 0, indexed(row, file.identity), None, index


def _successes(task: object) -> list[Any]:
    metrics = task.get("metrics") if isinstance(task, dict) else None
    successes = metrics.get("successes") if isinstance(metrics, dict) else None
    return successes if isinstance(successes, list) else []


def _task_rows(task: Row, success: str) -> list[Row]:
    """The episodes of a task. If there are fewer videos than episodes, the first episodes have them."""
    same = {key: value for key, value in task.items() if key not in {"metrics", "task_id"}}
    if isinstance(task.get("task_id"), (str, int)):
        same["task"] = str(task["task_id"])
    rows: list[Row] = [{**same, success: value} for value in _successes(task)]
    for name, values in task["metrics"].items():
        if name != "successes" and isinstance(values, list):
            column = _COLUMNS.get(str(name), str(name))
            for row, value in zip(rows, values):
                row[column] = value
    return rows


def _episodes(file: Whole, episodes: object) -> Iterator[Entry]:
    listed: list[Any] = episodes if isinstance(episodes, list) else []
    for position, episode in enumerate(listed):
        index = integer(episode.get("episode_ix")) if isinstance(episode, dict) else None
        if index is None or index < 0:
            yield 0, RefusedError(NO_RECORD, "episode_without_index", entry=position), None, None
            continue
        fields = {key: value for key, value in episode.items() if key not in {"episode_ix", "success"}}
        fields.update(_named(file, episode.get(GROUP)))
        fields[file.identity.verdict_key] = episode.get("success")
        yield 0, indexed(fields, file.identity), None, index


def _named(file: Whole, group: object) -> dict[str, str]:
    """The environment that a group of tasks names, if nothing else names it."""
    known = not file.identity.asks_environment or not isinstance(group, str) or not group
    return {} if known else {file.identity.environment_field.name: str(group)}


def _totals(value: Row) -> dict[str, Row]:
    """Percentages with their numbers of episodes, by environment; else the one for all."""
    groups = value.get("per_group")
    if isinstance(groups, dict) and groups:
        return {group: one for group, one in groups.items() if isinstance(one, dict) and "pc_success" in one}
    totals = (value[key] for key in ("overall", "aggregated") if isinstance(value.get(key), dict))
    last = next((one for one in totals if "pc_success" in one), None)
    return {"": last} if last else {}


def _compared(file: Whole, rows: list[Row], group: str, total: Mapping[str, Any]) -> Iterator[Entry]:
    rate, success = total.get("pc_success"), file.identity.success
    counted = [verdict_of(row, success)[0] for row in rows if not group or row.get(GROUP) == group]
    good = counted.count(True)
    if not counted and any(GROUP in row for row in rows) and not (PER_TASK in total or PER_EPISODE in total):
        yield 0, RefusedError(NO_RECORD, "group_without_episodes", group=group[:TEXT_MOST]), None, None
    elif isinstance(rate, (int, float)) and counted and not agrees(str(rate), good, len(counted), scale=100):
        about = {"rate": str(rate), "successes": good, "episodes": len(counted)}
        code = "fraction_no_percentage" if agrees(str(rate), good, len(counted)) else "percentage_differs"
        yield 0, NOTHING, Fact(code, **about), None


def _object(file: Whole) -> Row:
    """The JSON object that a whole file is."""
    value = decode_whole(file.text)
    if not isinstance(value, dict):
        raise RefusedError(NO_RECORD, "not_an_object")
    return value


def _elements(text: str) -> tuple[list[Any], str]:
    """The complete elements of a list, and the code of the fault behind them (empty: none)."""
    text = text.strip()
    if not text.startswith("["):
        raise RefusedError(UNREADABLE, "not_a_list") if text else RefusedError(TORN, "empty_file")
    found: list[Any] = []
    position = 1
    while True:
        between = _BETWEEN.match(text, position)
        position = between.end() if between else position
        if text.startswith("]", position):
            return found, ""
        try:
            value, position = _decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            return found, "json_broken_off"
        if deep(value):
            return found, "nested_too_deeply"
        found.append(value)
