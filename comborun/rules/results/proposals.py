"""Proposes a line for `results:` that would make more rows count. Pure.

Every proposal was tried on rows of the file itself: more of them count with it, or have a verdict.
"""

from __future__ import annotations

import re
from itertools import product

from comborun.rules.patterns import late
from comborun.rules.results.codings import Coding, verdict_word
from comborun.rules.results.episodes import plain
from comborun.rules.results.fields import (
    ENVIRONMENT,
    IGNORE,
    INDEX,
    LINE,
    MISSING,
    NO_VERDICTS,
    POLICY,
    Field,
    Identity,
    RefusedError,
)
from comborun.rules.results.fields import integer as whole
from comborun.rules.results.one_row import read_row, verdict_of
from comborun.rules.results.repeats import STEP, strides

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterable, Iterator, Mapping, Sequence, Tuple

    Row = Mapping[str, Any]
    Span = Tuple[int, int]
    Keys = Dict[str, Any]
    """key of `results` -> its value in a grid: a text, or a map"""

INDICES = (
    *("episode", "episode_index", "episode_idx", "episode_id", "episode_ix", "global_episode_index", "ep", "ep_idx"),
    *("ep_id", "episode_num", "episode_number", "trial", "trial_id", "trial_idx", "rollout"),
    *("idx", "index", "i", "_step"),
)
"""names of an episode's index"""
VERDICTS = (
    *("success", "is_success", "task_success", "success_once", "succeeded", "successful", "solved", "completion"),
    *("completed", "passed", "goal_reached", "goal_achieved", "reached_goal", "task_completed", "done_success"),
)
"""names of a verdict"""
_OUTCOMES = (
    *("is_solved", "is_completed", "task_complete", "complete", "achieved", "reached", "won", "succ", "success_flag"),
    *("episode_success", "ep_success", "final_success", "success_label", "success_pct", "success_percent", "outcome"),
    *("result", "verdict", "status", "ok", "goal", "success_rate"),
)
"""names of fields that hold a verdict if their values are those of one"""
_FAILURES = ("failed", "failure", "is_failure", "is_failed", "fail", "task_failed", "episode_failed", "unsuccessful")
"""names of a verdict that is true where the episode did not succeed"""
VERDICT_NAMES = (*VERDICTS, *_OUTCOMES, *_FAILURES)
_PLAIN = late(
    r"(?i)\W*(?:(?:is|task|episode|not|un)[ _-]?)?(?:success(?:ful)?|succeeded|fail(?:ed|ure)?|pass(?:ed)?|solved)\W*"
)
"""a word that is a verdict wherever it stands"""
_WHOLE = late(
    r"(?:(?:is|task|episode|ep|final|ever|any|overall)_)*(?:success|succeeded|successful|solved|passed|completed?)"
    r"(?:_(?:once|ever|any|at|the|end|final|last|flag|label|s))*"
)
"""a name of a verdict of the whole episode: of a part of it, as `grasp_success`, another verdict is no wonder"""
_VAGUE = ("complete", "ok", "goal", "status", "reached", "success_rate")
"""names of fields that hold no verdict of an episode if it is true, in a document by itself"""
SEEDS = ("env_seed", "episode_seed", "reset_seed", "eval_seed", "init_seed", "rng_seed", "scene_seed")
"""names of a seed"""
RATE = late(r"(?:^|[_/.])(?:rate|sr|mean|avg|average|ratio)(?:$|[_/.])", re.IGNORECASE)
"""fields of a row that sums up episodes"""
SCORES = late(r"return|reward|score|\br$", re.IGNORECASE)
_FULL_MARKS = ({10}, {100})
VALUE = "value"
"""the field of numbers that a document lists without a name for each"""
_DEPTH = 4
_FIELDS_MOST = 200


def propose(samples: Sequence[Row], identity: Identity, span: Span, seen: Iterable[int] = ()) -> Keys:
    """What to write in `results`, from some rows of one session; empty if nothing is wrong or nothing helps.

    `seen` are the indices of all records, if there are any.
    """
    choices = ([{}, *step(samples, identity, span)] for step in (_combo, _index, _verdict))
    best: Keys = {}
    most = _worth(samples, identity, span)
    for chosen in product(*choices):
        keys = {key: value for part in chosen for key, value in part.items()}
        worth = _worth(samples, identity.by(**keys), span)
        if worth > most:
            best, most = keys, worth
    if best and not most[2]:
        return {}  # rows without results of episodes, perhaps a log
    best = best or _shifted(identity, span, sorted(seen))
    return {**best, **seed(samples, identity)} if best else best


def seed(samples: Sequence[Row], identity: Identity) -> Keys:
    """The field with the seed of an episode, if it has another name and a different value in each row."""
    if identity.seed.word or any(identity.seed.find(row) is not MISSING for row in samples):
        return {}
    for name in _names(samples, SEEDS):
        values = [whole(Field("seed", name).find(row)) for row in samples]
        if None not in values and len(set(values)) == len(values):
            return {"seed": name}
    return {}


def proposed(keys: Keys, samples: Sequence[Row]) -> dict[str, Any]:
    """The fields of a fact that proposes these keys. `score`: of rows with only numbers, the one that could decide;
    `rivals`: other verdicts of these rows that disagree with the proposed ones."""
    fields: dict[str, Any] = {"keys": [{"key": key, "value": value} for key, value in keys.items()]}
    score = _score(samples) if keys.get("success") == NO_VERDICTS else ""
    rivals = _rivals(samples, keys.get("success"))
    return {**fields, **({"score": score} if score else {}), **({"rivals": rivals} if rivals else {})}


def of_whole(name: str) -> bool:
    """Whether a field is called like a verdict of the whole episode: `success_at_end`."""
    return bool(_WHOLE.fullmatch(plain(name)))


def _rivals(samples: Sequence[Row], success: object) -> list[dict[str, Any]]:
    """Other fields of the whole episode's verdict that disagree with the proposed one, and in how many rows."""
    own = Field("success", success)
    found = []
    for name in {path: None for row in samples for path, _ in _paths(row)} if not own.word and own.name else ():
        if name != own.name and of_whole(name):
            pairs = [(verdict_of(row, own)[0], verdict_of(row, Field("success", name))[0]) for row in samples]
            told = [one != other for one, other in pairs if one is not None and other is not None]
            if any(told):
                found.append({"field": name, "rows": sum(told), "of": len(told)})
    return found


def _score(samples: Sequence[Row]) -> str:
    numbers = [path for path, value in _paths(samples[0]) if isinstance(value, float)] if samples else []
    return next((path for path in numbers if SCORES.search(path)), numbers[0] if numbers else "")


def _worth(samples: Sequence[Row], identity: Identity, span: Span) -> tuple[int, int, int]:
    """How many rows count, for how many planned episodes, and how many have a verdict."""
    episodes, verdicts, taken, coding = set(), 0, 0, Coding()
    for row in samples:
        try:
            record = read_row(row, identity, span[0] + taken if identity.episode.word else None)
        except RefusedError:
            continue
        taken += 1
        if not span[1] or span[0] <= record.index < sum(span):
            episodes.add(record.index)
        verdicts += record.verdict is not None or bool(identity.success.word)
        coding.add(record.value, record.verdict)
    return taken, len(episodes), 0 if coding.undecided else verdicts


def _lack(samples: Sequence[Row], identity: Identity) -> set[str]:
    """The reasons why rows are refused; of each row the first one."""
    return set(filter(None, (_refusal(row, identity) for row in samples)))


def _refusal(row: Row, identity: Identity) -> str:
    try:
        read_row(row, identity, 0 if identity.episode.word else None)
    except RefusedError as refused:
        return refused.reason
    return ""


def _combo(samples: Sequence[Row], identity: Identity, span: Span) -> Iterator[Keys]:
    """Proposes to ignore other names if all rows have the same: the file belongs to one session."""
    del span
    keys: Keys = {}
    for key, field in ((POLICY, identity.policy_field), (ENVIRONMENT, identity.environment_field)):
        names = {str(field.find(row)) for row in samples}
        if len(names) == 1 and key in _lack(samples, identity.by(**keys)):
            keys[key] = IGNORE
    if keys:
        yield keys


def _index(samples: Sequence[Row], identity: Identity, span: Span) -> Iterator[Keys]:
    if INDEX not in _lack(samples, Identity("", "", identity.rules.replace(**_ANY_COMBO))):
        return
    first, count = span
    for name in _names(samples, INDICES):
        values = [whole(Field(INDEX, name).find(row)) for row in samples]
        known = [value for value in values if value is not None]
        if len(known) == len(values) == len(set(known)):
            origin = min(known) - first
            fits = not count or max(known) <= first + count
            yield {"episode": {"field": name, "from": 1} if origin == 1 and fits else name}
    if (len(samples) > 1 or count == 1) and not _count_steps(samples):
        yield {"episode": LINE}


def _count_steps(samples: Sequence[Row]) -> bool:
    """Whether the rows are the steps of an episode: a field that is named so counts from 0 or 1, and starts again."""
    shared = set.intersection(*({path for path, _ in _paths(row)} for row in samples)) if samples else set()
    for name in filter(STEP.search, shared):
        values = [whole(Field(INDEX, name).find(row)) for row in samples]
        known = [value for value in values if value is not None]
        counts = all(after in (before + 1, known[0]) for before, after in zip(known, known[1:]))
        if len(known) == len(values) > 2 and known[0] in (0, 1) and known[1] != known[0] and counts:
            return True
    return False


_ANY_COMBO = {POLICY: IGNORE, ENVIRONMENT: IGNORE}


def _names(samples: Sequence[Row], known: Sequence[str]) -> list[str]:
    """Fields of all rows that have a well-known name, in the order of these, however their letters are written: first
    those of the rows themselves, then those further in.
    """
    shared = set.intersection(*({path for path, _ in _paths(row)} for row in samples)) if samples else set()
    paths = sorted(shared, key=lambda path: (path.count("."), path))
    found = ((path.count("."), at, path) for path in paths for at, name in enumerate(known) if name == plain(path))
    return [path for _, _, path in sorted(found)]


def _verdict(samples: Sequence[Row], identity: Identity, span: Span) -> Iterator[Keys]:
    if identity.success.word or identity.success.tests:
        return
    held = [value for row in samples if (value := identity.success.find(row)) not in (MISSING, None)]
    if held and all(isinstance(value, dict) for value in held):
        inner = [path for path, value in _paths(samples[0]) if path.startswith(f"{identity.success.name}.")]
        yield from ({"success": path} for path in inner if isinstance(Field("success", path).find(samples[0]), bool))
        return
    if held:
        if coded := _coded(samples, identity.success.name, clear=False):
            yield {"success": coded}
        return
    paths = list(_paths(samples[0])) if samples else []
    for wanted, (path, _) in product(VERDICT_NAMES, paths):
        if plain(path) == wanted and (rule := verdict_rule(samples, path)):
            yield {"success": rule}
            return
    if paths and all(whole(row.get(VALUE)) in (0, 1) for row in samples):
        yield {"success": VALUE}
    indexed = any(identity.episode.find(row) is not MISSING for row in samples)
    sums_up = any(RATE.search(path) for path, _ in paths) or (len(samples) == 1 < span[1] and not indexed)
    if any(isinstance(value, float) or SCORES.search(path) for path, value in paths) and not sums_up:
        yield {"success": NO_VERDICTS}


def verdict_rule(samples: Sequence[Row], path: str, apart: bool = False) -> object:
    """What to write for `success` if the field with a verdict's name holds verdicts; None if it does not.

    `apart`: each row is a document of its own, and most of these documents are not episodes.
    """
    name, values = plain(path), [Field("success", path).find(row) for row in samples]
    told = [value for value in values if value is not MISSING and value is not None]
    words = bool(told) and all(isinstance(value, str) and _PLAIN.fullmatch(value) for value in told)
    if (words or not apart) and (coded := _coded(samples, path, clear=not words)):
        return coded
    if words and apart:
        return path  # only failures so far
    if name in _FAILURES:
        good = "false" if all(isinstance(value, bool) for value in told) else "0"
        return {"field": path, "any_of": [good]} if told and all(value in (0, 1) for value in told) else None
    if not told or (apart and name in _VAGUE):
        return None
    return path if isinstance(told[0], bool) or name in VERDICTS else None


def failures_only(samples: Sequence[Row]) -> tuple[str, list[str]]:
    """The field in which words say that all these episodes failed, and the words. Which word means a success is not
    seen yet."""
    for wanted, (path, _) in product(_OUTCOMES, list(_paths(samples[0])) if samples else ()):
        words = [Field("success", path).find(row) for row in samples] if plain(path) == wanted else []
        if words and all(isinstance(word, str) and verdict_word(word.strip().lower()) is False for word in words):
            return path, list(dict.fromkeys(words))
    return "", []


def _coded(samples: Sequence[Row], path: str, clear: bool = True) -> dict[str, Any]:
    """What means a success in a field of words, or of 0 and full marks; empty if its values don't show it, or are not
    `clear`.
    """
    field, coding = Field("success", path), Coding(path)
    for row in samples:
        coding.add(field.find(row), verdict_of(row, field)[0])
    numbers = {value for value in coding.others if not isinstance(value, str)}
    seen = len(coding.truths) + len(coding.others) > 1 and (not numbers or numbers in _FULL_MARKS)
    return coding.proposal() if (seen or not clear) and coding.undecided else {}


def is_verdict(name: str) -> bool:
    """Whether a field is called like a verdict: `success`, `eval/success`."""
    return plain(name) in VERDICTS


def _paths(row: Row, before: str = "", depth: int = 0) -> Iterator[tuple[str, object]]:
    for name, value in list(row.items())[:_FIELDS_MOST]:
        path = f"{before}{name}"
        if isinstance(value, dict) and depth < _DEPTH:
            yield from _paths(value, f"{path}.", depth + 1)
        elif isinstance(value, list) and len(value) == 1 and not isinstance(value[0], (dict, list)):
            yield path, value[0]  # of a vector of one environment
        elif not isinstance(value, (dict, list)):
            yield path, value


def _shifted(identity: Identity, span: Span, seen: Sequence[int]) -> Keys:
    """Proposes an origin if there are as many indices as planned, one after another, and begin later. Other indices of
    a whole combo are numbered as they come, if they are as many as planned or have equal distances.
    """
    first, count = span
    field = identity.episode
    if not count or field.word or field.names or field.origin or not seen:
        return {}
    if list(seen) == list(range(seen[0], seen[0] + count)) and (seen[0] == first + 1 or (not first and seen[0] > 0)):
        return {"episode": {"field": field.name, "from": seen[0] - first}}
    outside = seen[0] >= first + count or seen[-1] >= first + count
    if strides(seen, span) or (not first and outside and len(seen) == count > 1 and seen[0] != 1):
        return {"episode": LINE}
    return {}


def renamed(named: Sequence[str], known: Sequence[str]) -> dict[str, str]:
    """Names of a grid -> what rows call them instead, if that is clear: `random` -> `rnd`. Empty otherwise."""
    found: dict[str, str] = {}
    for one in named:
        alike = [name for name in known if _shortens(one, name) or _shortens(name, one)]
        if len(alike) != 1 or alike[0] in found:
            return {known[0]: one} if len(named) == len(known) == 1 else {}
        found[alike[0]] = one
    return found


def _shortens(short: str, name: str) -> bool:
    """Whether the letters of one name stand in another in this order, from its first one."""
    letters = iter(name.casefold())
    short = "".join(one for one in short.casefold() if one.isalnum())
    return bool(short) and name.casefold().startswith(short[0]) and all(one in letters for one in short)
