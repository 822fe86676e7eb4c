"""Whole JSON documents: one per episode, a list of an episode's steps, or an evaluation with all its tasks."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, BinaryIO

from comborun.reporter.adapters import names
from comborun.reporter.adapters.rates import agrees, count
from comborun.reporter.adapters.reading import UNNAMED, RefusedFileError, RejectKind
from comborun.rules.episodes import LIST_LAST_FOLDER, PER_FILE_NAME, decode_whole
from comborun.rules.fields import MISSING, NO_VERDICTS, TORN, RefusedError, integer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from comborun.reporter.adapters.reading import Context, Reading

SIZE_LIMIT = 256 << 20
"""bytes; a larger document is no result but a program gone wrong"""
STEPS_AT_MOST = 50
"""a program with lists of steps ends an episode there without saying that it is done"""
SUCCESS = "task_success"
"""of documents per episode and of steps, unless the grid's own field is there"""
PER_TASK, PER_EPISODE = "per_task", "per_episode"
_COLUMNS = {"sum_rewards": "sum_reward", "max_rewards": "max_reward", "video_paths": "video"}
"""lists with a value per episode, or per first episodes, and what one value is called"""
_BETWEEN = re.compile(r"\s*,?\s*")
_decoder = json.JSONDecoder()


def per_file(reading: Reading, stream: BinaryIO, context: Context) -> None:
    """An object per episode and file, the episode's number in the file's name: `episode_12_final_res.json`."""
    index = _number(PER_FILE_NAME, PurePosixPath(context.path).name, "the file's name")
    value = _object(stream)
    reading.take_episode(_with_success(context, value), 0, index, value)


def list_last(reading: Reading, stream: BinaryIO, context: Context) -> None:
    """A folder per episode with a list of its steps: `episode_12/cosmos_log.json`. The last step that has a verdict
    decides.

    The file is rewritten twice per step, so it can be cut off anywhere. An episode that has not finished is missing,
    not failed: its last step says only how far it had come.
    """
    index = _number(LIST_LAST_FOLDER, PurePosixPath(context.path).parent.name, "its folder's name")
    values, fault = _elements(_text(stream))
    steps = [value for value in values if isinstance(value, dict)]
    if len(steps) < STEPS_AT_MOST and not (steps and steps[-1].get("done") is True):
        raise RefusedFileError(f"not finished after {len(steps)} steps{fault and f': {fault}'}", RejectKind.TORN)
    told = _last_told(steps)
    reading.take_episode(_with_success(context, told), 0, index, {**told, "steps": len(steps)})
    if fault:
        reading.defect(0, f"{fault} behind step {len(steps)}: the steps before it count")
    if len(steps) < len(values):
        reading.defect(0, f"{len(values) - len(steps)} entries are no steps")


def evaluation(reading: Reading, stream: BinaryIO, context: Context) -> None:
    """`eval_info.json`: per task a list of successes, or (an older generation) one object per episode.

    Where the lists are missing, a percentage of so many episodes is an aggregate. The percentages beside the lists are
    compared with them and not counted.
    """
    value = _object(stream)
    if isinstance(value.get(PER_TASK), list):
        _take_tasks(reading, value[PER_TASK], context)
    if isinstance(value.get(PER_EPISODE), list):
        _take_episodes(reading, value[PER_EPISODE], _of_group(context, None))
    for group, total in _totals(value).items():
        if reading.records:
            _compare(reading, group, total)
        else:
            _take_total(reading, total, _of_group(context, group))


def _number(pattern: re.Pattern[str], name: str, where: str) -> int:
    """The index of the episode whose number, counted from 1, is in a name."""
    found = pattern.fullmatch(name)
    if not found or not int(found["number"]):
        raise RefusedFileError(f"{where} holds no episode's number", RejectKind.NOT_A_RECORD)
    return int(found["number"]) - 1


def _with_success(context: Context, value: Mapping[str, Any]) -> Context:
    """Any program may write such files, with the grid's own field."""
    rules = context.rules
    held = rules.success == NO_VERDICTS or context.identity.success.find(value) is not MISSING
    return context if held else context.in_words(SUCCESS, rules.episode)


def _last_told(steps: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The `info` of the last step that carries the verdict; the executed half of the very last one may be missing."""
    infos = (info for step in reversed(steps) if isinstance(info := step.get("info"), dict))
    return next((info for info in infos if SUCCESS in info), {})


def _take_tasks(reading: Reading, tasks: list[Any], context: Context) -> None:
    """Tasks of one environment follow each other, each with room for as many episodes as the longest has."""
    stride = max((len(_successes(task)) for task in tasks), default=0)
    taken = Counter[str]()
    for position, task in enumerate(tasks):
        own = _of_group(context, task.get("task_group") if isinstance(task, dict) else None)
        environment = own.environment or UNNAMED
        first = own.first + taken[environment] * stride
        taken[environment] += 1
        if not _successes(task):
            reading.reject(0, f"entry {position} of {PER_TASK} lists no successes")
            continue
        for index, fields in enumerate(_task_rows(task, own.verdict_key), first):
            reading.take_episode(own, 0, index, fields)


def _successes(task: Any) -> list[Any]:
    metrics = task.get("metrics") if isinstance(task, dict) else None
    successes = metrics.get("successes") if isinstance(metrics, dict) else None
    return successes if isinstance(successes, list) else []


def _task_rows(task: dict[str, Any], success: str) -> list[dict[str, Any]]:
    """The episodes of a task. Of videos there are fewer than episodes: the first ones have them."""
    same = {key: value for key, value in task.items() if key not in {"metrics", "task_id"}}
    if isinstance(task.get("task_id"), str | int):
        same["task"] = str(task["task_id"])
    rows = [{**same, success: value} for value in _successes(task)]
    columns: dict[str, Any] = task["metrics"]
    for name, values in columns.items():
        if name != "successes" and isinstance(values, list):
            for row, value in zip(rows, values, strict=False):
                row[_COLUMNS.get(name, name)] = value
    return rows


def _take_episodes(reading: Reading, episodes: list[Any], context: Context) -> None:
    for position, episode in enumerate(episodes):
        index = integer(episode.get("episode_ix")) if isinstance(episode, dict) else None
        if index is None or index < 0:
            reading.reject(0, f"entry {position} of {PER_EPISODE} has no index episode_ix")
            continue
        fields = {key: value for key, value in episode.items() if key not in {"episode_ix", "success"}}
        fields[context.verdict_key] = episode.get("success")
        reading.take_episode(context, 0, context.first + index, fields)


def _of_group(context: Context, group: object) -> Context:
    """Under the names of a group of tasks."""
    if isinstance(group, str) and group:
        return context.named(names.policy(context.path, {group}), group)
    return context.named(*names.combo(context.path))


def _totals(value: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Percentages with their numbers of episodes: by environment; all together only where they aren't split."""
    groups = value.get("per_group")
    if isinstance(groups, dict) and groups:
        return {group: total for group, total in groups.items() if isinstance(total, dict)}
    total = next((value[key] for key in ("overall", "aggregated") if isinstance(value.get(key), dict)), None)
    return {"": total} if total else {}


def _compare(reading: Reading, group: str, total: Mapping[str, Any]) -> None:
    rate = total.get("pc_success")
    counted = [one.success for one in reading.records if not group or one.extra.get("task_group") == group]
    good = counted.count(True)
    if isinstance(rate, int | float) and counted and not agrees(str(rate), good, len(counted), scale=100):
        fraction = ": a fraction, where a percentage is meant" if agrees(str(rate), good, len(counted)) else ""
        reading.defect(0, f"pc_success of {rate} is not {good} of {len(counted)} as listed{fraction}")


def _take_total(reading: Reading, total: Mapping[str, Any], context: Context) -> None:
    try:
        counted = count(str(total.get("pc_success")), integer(total.get("n_episodes")) or 0, scale=100)
    except ValueError as error:
        reading.reject(0, str(error))
    else:
        reading.take_count(context, 0, counted, {})


def _text(stream: BinaryIO) -> str:
    content = stream.read(SIZE_LIMIT + 1)
    if len(content) > SIZE_LIMIT:
        raise RefusedFileError(f"larger than {SIZE_LIMIT >> 20} MiB")
    text = content.decode("utf-8", "replace")
    if not text.strip():
        raise RefusedFileError("empty: being written, or cut off", RejectKind.TORN)
    return text


def _object(stream: BinaryIO) -> dict[str, Any]:
    """The JSON object that a whole file is."""
    try:
        value = decode_whole(_text(stream))
    except RefusedError as refused:
        torn = refused.reason == TORN
        raise RefusedFileError(str(refused), RejectKind.TORN if torn else RejectKind.UNREADABLE) from refused
    if not isinstance(value, dict):
        raise RefusedFileError("not a JSON object", RejectKind.NOT_A_RECORD)
    return value


def _elements(text: str) -> tuple[list[Any], str]:
    """The elements of a list as far as they are whole, and what is wrong behind them: empty when nothing is."""
    text = text.lstrip()
    if not text.startswith("["):
        raise RefusedFileError("not a JSON list")
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
            return found, "half-written JSON"
        found.append(value)
