"""k of n: how many episodes succeeded, and not which, wherever a program states it. Pure."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import islice

from comborun.rules.results.episodes import plain
from comborun.rules.results.fields import (
    FORMAT,
    MISSING,
    NO_RECORD,
    TEXT_MOST,
    RefusedError,
    amount_of,
    integer,
    number,
)
from comborun.rules.results.one_row import verdict_of
from comborun.rules.results.rates import EPISODES_MOST, SHOWN, Count, count, goes_on, total
from comborun.rules.vocabulary import word_set

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Collection, Iterable, Iterator, Mapping, Sequence, Tuple

    from comborun.rules.results.fields import Identity

    Path = Tuple[str, ...]

METRICS = ("metrics", "info", "final_info")
"""objects in an episode whose fields count as the episode's own"""
_GOOD = word_set("success successes successful succeeded succ suc solved passed pass wins correct")
_BAD = word_set("fail fails failed failure failures unsuccessful")
_NUMBER = word_set("n num nums count cnt total")
_EPISODES = word_set("episodes trials rollouts attempts tests evals trajectories tasks runs")
_ONE = word_set("episode trial rollout test eval trajectory")
_MEAN = word_set("rate ratio mean avg average pct percent pc sr")
GOOD, BAD, EVERY, RATE = "good", "bad", "every", "rate"
_SPECIAL = {"of": EVERY, "test_num": EVERY, "eval_num": EVERY, "successrate": RATE, "sr": RATE}
_SPECIAL.update({"success_once": RATE, "success_at_end": RATE})
PERCENTAGES = ("pc_success", "success_pct", "success_percent")
"""rates that always are percentages"""
_MEANS = word_set("success succ is_success solved")
"""names of a verdict, and so of the mean of verdicts"""
_FRACTION = re.compile(r"\s*(\d{1,7})\s*(?:/|of|out of)\s*(\d{1,7})\s*")
"""k of n in a text"""
_IDS = word_set("ids indices indexes idx idxs list numbers")
DEPTH = 8


def opened(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row with the fields of its metrics added to its own."""
    inner = [entry for name, entry in row.items() if name in METRICS and isinstance(entry, dict)]
    return {**{name: entry for one in inner for name, entry in one.items()}, **row}


@lru_cache(maxsize=4096)
def kind_of(name: str) -> str:
    """What a number is called: that of successes, of failures, of all episodes, or their rate; empty: another one."""
    name = plain(name)
    words = name.split("_")
    rest = {*words} - _GOOD - _BAD
    if name in _SPECIAL:
        return _SPECIAL[name]
    if len(rest) < len({*words}):
        told = GOOD if _GOOD & {*words} else BAD
        return told if rest <= _NUMBER | _EPISODES else RATE if told is GOOD and rest <= _MEAN | _NUMBER else ""
    sized = rest <= _NUMBER or rest & _EPISODES or words[0] in _NUMBER
    return EVERY if sized and rest <= _NUMBER | _EPISODES | _ONE else ""


def stated(row: Mapping[str, Any]) -> Count | None:
    """k of n, or a rate of n, that an object states. None if it states none. Its other numbers are metrics."""
    fields = opened(row)
    for key, one in fields.items():
        if isinstance(one, (str, list)) and kind_of(key) in (GOOD, RATE) and (found := _k_of_n(one)):
            return found
    listed = ((_listed(key, one), one) for key, one in row.items() if isinstance(one, list))
    fields = {**{kind: len(one) for kind, one in listed if kind}, **fields}
    held = {key: one for key, one in fields.items() if amount_of(one) is not None}
    whole = {key: at for key, one in held.items() if (at := _whole(one)) is not None}
    good, bad, every = (
        min((key for key in whole if kind_of(key) == kind), key=_of_tasks, default="") for kind in (GOOD, BAD, EVERY)
    )
    rates = [key for key in held if kind_of(key) == RATE]
    if every and not rates and _of_mean(good, fields.get(good), fields[every]):
        return None  # 1 of them, or all
    episodes = whole[every] if every else whole[good] + whole[bad] if good and bad else 0
    rate = amount_of(held[rates[0]]) if rates else None
    if not episodes and good and rate and 0 < rate <= 1:  # Robomimic's older versions
        episodes = round(whole[good] / rate)
    if not 0 < episodes <= EPISODES_MOST:
        return None
    if good and 0 <= whole[good] <= episodes:
        found = Count(whole[good], episodes)
    elif bad and every and rate is None and _alone(whole, bad, every):
        found = Count(episodes - whole[bad], episodes)
    elif rate is not None:
        percent = plain(rates[0]) in PERCENTAGES or rate > 1 or "%" in str(held[rates[0]])
        try:
            found = count(str(held[rates[0]]).strip().rstrip("% "), episodes, 100 if percent else 1)
        except RefusedError:
            return None
    else:
        return None
    return found.of(None, _metrics(held, (good, bad, every, *rates[:1])))


def _of_mean(key: str, value: object, episodes: object) -> bool:
    """Whether `success: 1.0` beside `num_episodes: 10` may be the mean of verdicts. Tables write all numbers so."""
    return (
        plain(key) in _MEANS and isinstance(value, float) and value == 1 and isinstance(episodes, int) and episodes > 1
    )


def _alone(whole: Mapping[str, int], bad: str, every: str) -> bool:
    """Whether all that did not fail succeeded: no other number may count episodes that broke off, say."""
    return 0 <= whole[bad] <= whole[every] and not any(
        0 <= whole[key] <= whole[every] for key in whole.keys() - {bad, every}
    )


def counted(row: object, wanted: str = "") -> Count:
    """The count that an object of a known format states; `wanted` is the name of its rate. Raises RefusedError."""
    held = opened(row) if isinstance(row, dict) else {}
    named = [next((key for key in held if kind_of(key) == kind), "") for kind in (RATE, EVERY, GOOD)]
    rate, every, good = wanted if wanted in held else named[0], *named[1:]
    if not rate or not (every or good):
        raise RefusedError(NO_RECORD, "no_count", has=[str(key)[:TEXT_MOST] for key in list(held)[:SHOWN]])
    share = amount_of(held[rate])
    said = held.get(every, 0)
    if not every and share:  # Robomimic's older versions
        said = round((number(held[good]) or 0) / share)
    episodes = _whole(said)
    if episodes is None:
        raise RefusedError(NO_RECORD, "no_number_of_episodes", said=str(said)[:TEXT_MOST])
    found = count(str(held[rate]), episodes, 100 if plain(rate) in PERCENTAGES else 1)
    return found.of(None, _metrics(held, (rate, every, good)))


def _metrics(held: Mapping[str, Any], told: Collection[str]) -> dict[str, float]:
    """The other numbers of an object that states a count."""
    return {key: one for key, value in held.items() if key not in told and (one := number(value)) is not None}


def _whole(value: object) -> int | None:
    amount = number(value)
    return int(amount) if amount is not None and amount.is_integer() else integer(value)


def _of_tasks(key: str) -> bool:
    """Whether a number may be that of tasks, which have several episodes."""
    return "task" in key.lower() or "run" in key.lower()


def _k_of_n(value: str | list[Any]) -> Count | None:
    """`3/5`, `3 of 5` or `[3, 5]`; two verdicts are no such pair."""
    if isinstance(value, str):
        found = _FRACTION.fullmatch(value)
        pair = [*map(int, found.groups())] if found else []
    else:
        pair = value if all(isinstance(one, int) and not isinstance(one, bool) for one in value) else []
    good, episodes = pair if len(pair) == 2 and (isinstance(value, str) or pair[1] > 1) else (1, 0)
    return Count(good, episodes) if 0 <= good <= episodes else None


def _listed(key: str, ids: list[Any]) -> str:
    """Whether a list names the episodes that failed, or those that succeeded; empty: neither."""
    words = plain(key).split("_")
    kind = kind_of("_".join(word for word in words if word not in _IDS | _ONE) or "-")
    telling = {*words} & (_IDS | _EPISODES - {"tasks", "runs"}) or any(one not in (0, 1) for one in ids)
    distinct = all(isinstance(one, str) or integer(one) is not None for one in ids) and len({*ids}) == len(ids)
    return {GOOD: "success", BAD: "failed"}.get(kind, "") if telling and distinct and "tasks" not in words else ""


def aggregate(value: Any, path: str = "") -> Count | None:
    """How many episodes of a document succeeded, by its outermost count or by its innermost ones together; `path` is
    the file's. None if it says nothing of this. Raises RefusedError if they contradict each other, or are only rates.
    """
    found = list(_counts(value, (), 0))
    if not found:
        if rates := list(islice(_only_rates(value, (), 0), SHOWN)):
            raise RefusedError(FORMAT, "rates_of_no_number", found=rates)
        return None
    for place, one in found:
        one.parts = (f"{'.'.join(place)[:TEXT_MOST] or path or 'the whole'}: {one.successes} of {one.episodes}",)
    around = {place[:depth] for place, _ in found for depth in range(len(place))}
    inner = [(place, one) for place, one in found if place not in around]
    whole, (first_place, first) = _without_sum(inner), found[0]
    if first_place in around and all(place[: len(first_place)] == first_place for place, _ in found):
        if first.episodes == whole.episodes and first.successes != whole.successes:
            parts = [part for _, one in found for part in one.parts]
            raise RefusedError(FORMAT, "counts_contradict", found=parts[:SHOWN])
        first.parts = (*first.parts, *whole.parts)
        whole = first
    whole.sure = False
    return whole


def are_counts(rows: Sequence[Any], identity: Identity) -> bool:
    """Whether these rows are no episodes, and each says how many of several succeeded.

    `{num_trials: 10, success: 1}` may be one of ten, or a success of ten planned ones: then the plan decides.
    """
    if identity.success.tests or identity.success.word or not rows:
        return False
    numbers: set[int] = set()
    for row in rows:
        said = stated(row) if isinstance(row, dict) and identity.episode.find(row) is MISSING else None
        if said is None:
            return False
        numbers.add(said.episodes)
    if any(verdict_of(row, identity.success)[0] is None for row in rows):
        return True
    planned = identity.planned or len(rows)
    of_episodes = len(rows) > 1 and (len(rows) == planned or numbers == {planned})
    return not (of_episodes or numbers == {1} or identity.episode.word)


def counting_on(rows: Sequence[Any], identity: Identity) -> Count | None:
    """The last of rows that each count all episodes so far: `{episode: 3, successes: 2, total: 3}`; None for others.

    Raises RefusedError where the same numbers may be the verdicts of the rows.
    """
    success = identity.success
    said = [stated(row) if isinstance(row, dict) else None for row in rows]
    counts = [one for one in said if one]
    if success.tests or success.word or len(counts) < max(2, len(rows)) or not goes_on(counts):
        return None
    sizes = {after.episodes - one.episodes for one, after in zip(counts, counts[1:])}
    every = sum(one.episodes for one in counts)
    one_by_one = sizes == {1} and len(counts) > 2
    evenly = sizes == {counts[0].episodes} and every != identity.planned  # else they may be of several tasks
    if 0 in sizes or not (one_by_one or evenly or counts[-1].episodes == identity.planned != every):
        return None
    values = [success.find(opened(row)) for row in rows]
    if all(verdict_of(row, success)[0] is not None for row in rows):
        if any(isinstance(one, bool) for one in values) or values != [one.successes for one in counts]:
            return None
        keys = [{"key": "success", "value": {"field": success.name, "at_least": 1}}]
        raise RefusedError(FORMAT, "verdicts_or_counts", rows=len(rows), keys=keys, field=success.name)
    last = counts[-1]
    last.sure, last.parts = False, (f"the last of {len(rows)} rows: {last.successes} of {last.episodes}",)
    return last


SUM = re.compile(
    r"(?i)\W*(?:(?:grand|sub)[ _-]?)?(?:totals?|sum|means?|averages?|avg|median|std|overall|summary|aggregated?)\W*"
)
"""a text in a row that sums up those before it"""


def sums_up(row: Mapping[str, Any], identity: Identity, before: Collection[str]) -> bool:
    """Whether a row is no episode, and sums up those before it, which had these fields: `TOTAL,,0.5`."""
    held = MISSING if identity.episode.word else identity.episode.find(row)
    if number(held) is not None:
        return False
    names = (identity.policy_field.name, identity.environment_field.name)
    if any(isinstance(one, str) and SUM.fullmatch(one) for name, one in row.items() if name not in names):
        return True
    verdict = MISSING if identity.success.word else identity.success.find(row)
    return held is verdict is MISSING and any(kind_of(key) == RATE and key not in before for key in row)


def _without_sum(found: Sequence[tuple[Path, Count]]) -> Count:
    """The sum of all counts; or the one whose name says that it is the sum, even if some of the others are missing; or
    the last one if it is the sum of the others. Raises RefusedError if they contradict it.
    """
    counts = [one for _, one in found]
    named = [one for place, one in found if any(map(SUM.fullmatch, place))]
    whole = named[0] if len(named) == 1 else counts[-1]
    others = [one for one in counts if one is not whole]
    good, episodes = (sum(getattr(one, name) for one in others) for name in ("successes", "episodes"))
    if others and (whole.successes, whole.episodes) == (good, episodes):
        return whole
    if len(named) != 1 or not others:
        return total(counts)
    if good > whole.successes or episodes >= whole.episodes:
        raise RefusedError(FORMAT, "counts_contradict", found=[part for one in counts for part in one.parts][:SHOWN])
    return whole


def _counts(value: Any, path: Path, depth: int) -> Iterator[tuple[Path, Count]]:
    if depth > DEPTH or not isinstance(value, (dict, list)):
        return
    if isinstance(value, dict):
        one = stated(value)
        if one:
            yield path, one
        named = bool(path) and kind_of(path[-1]) in (GOOD, RATE)
        lists = all(isinstance(entry, list) for entry in value.values()) and (len(value) > 1 or named)
        kinds = (str, list) if lists else str
        texts = {key: _k_of_n(entry) for key, entry in value.items() if isinstance(entry, kinds)} if not one else {}
        if texts and None not in texts.values():
            yield from (((*path, key), found) for key, found in texts.items() if found)
    for key, entry in entries(value):
        if not (key in METRICS and isinstance(value, dict) and stated(value)):
            yield from _counts(entry, (*path, key), depth + 1)


def entries(value: Any) -> Iterable[tuple[str, Any]]:
    return value.items() if isinstance(value, dict) else ((f"[{at}]", one) for at, one in enumerate(value))


def _only_rates(value: Any, path: Path, depth: int) -> Iterator[str]:
    for key, entry in entries(value) if isinstance(value, (dict, list)) and depth <= DEPTH else ():
        if kind_of(key) == RATE and amount_of(entry) is not None:
            yield f"{'.'.join((*path, key))[:TEXT_MOST]}: {entry}"
        else:
            yield from _only_rates(entry, (*path, key), depth + 1)
