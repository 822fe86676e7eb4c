"""What a number is and what its name says: a reward, a success or a length of episodes, or a count of steps. Pure.

Programs have a name for each of these, and add words that change nothing: `rollout/ep_rew_mean`, `AverageEpRet`,
`avgReward(100)`, `Train/mean_reward`. A name counts if it holds one known word, and else only words that change none:
`reward_scale`, `min_reward` and `Episode_Reward/lin_vel` are no reward of episodes. Numbers are read as programs and
spreadsheets print them: `4096`, `1,234,567`, `12,5`, `20K`, `1.2M`, `nan`.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache

from comborun.rules.vocabulary import word_set

REWARD, SUCCESS, LENGTH = "reward", "success", "length"
ROLES = (REWARD, SUCCESS, LENGTH)
TRAINING, EVALUATION = "training", "evaluation"
UNITS = STEPS, ITERATIONS, EPOCHS, EPISODES = "steps", "iterations", "epochs", "episodes"
"""what a program counts; of several the first one that it has is taken"""
NAME_MOST = 200
"""characters of a name"""


_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_]+")
_CORES = {
    REWARD: "reward rewards rew rews rwrd return returns ret rets score scores eprewmean epret",
    SUCCESS: "success successes succ succs solved win wins winrate sr",
    LENGTH: "length lengths len lens eplenmean eplen",
}
_CORE = {word: role for role, words in _CORES.items() for word in words.split()}
_EPISODE = word_set("ep eps episode episodes episodic trajectory trajectories return ret epret eprewmean")
_MEAN = word_set("mean avg average averaged eprewmean eplenmean")
_PERCENT = word_set("percent percentage pct pc")
_EVALUATION = word_set("eval evals evaluation evaluations evaluate evaluated test testing val validation")
_NEUTRAL = (
    _EPISODE
    | _MEAN
    | _PERCENT
    | _EVALUATION
    | word_set(
        "returns train training rollout rollouts total sum cumulative undiscounted undisc running rate ratio once"
        " end at is current last latest per smoothed env envs environment task tasks final extrinsic agent agents"
        " overall raw original all the of over in fraction window charts metrics performance perf info stats global"
    )
)
_NO_PREFIX = word_set("reward rewards rew loss losses termination terminations curriculum weights scales")
"""words of a folder of names whose values are parts of a reward, or no measures at all"""
_OVER = re.compile(r"(?i)(.+)/(step|steps|iter|frame|frames|epoch|mean|avg|average)")
_BY_TIME = re.compile(r"(?i).+/(time|relative|wall|wall_time|walltime)")
"""of one value that is written over the clock, too"""
_OF_ITS_OWN = {"saving next best rewards": "next best reward"}
"""rl_games prints the mean reward of an epoch if it is the best so far"""

_STEP_CORES = {
    STEPS: "step steps timestep timesteps frame frames interacts interactions",
    ITERATIONS: "iteration iterations iter iters itr it update updates upd generation generations",
    EPOCHS: "epoch epochs epch",
    EPISODES: "episode episodes ep",
}
_STEP_CORE = {word: unit for unit, words in _STEP_CORES.items() for word in words.split()}
_STEP_NEUTRAL = word_set(
    "global total num number n env envs environment agent agents learning train training trained current sampled"
    " lifetime so far at eval evaluation after in policy ppo charts counters progress completed the opt optimizer"
    " gradient grad elapsed"
)
_WHOLE_STEPS = word_set("timestep timesteps env envs environment frame frames interacts interactions global total")


class Metric:
    """What a name means."""

    def __init__(self, role: str, name: str, of: str, percent: bool, score: int) -> None:
        self.role, self.name, self.of = role, name, of
        """`of`: TRAINING or EVALUATION"""
        self.percent = percent
        """whether its values are in per cent"""
        self.score = score
        """how surely it is the one of whole episodes; the highest is shown first"""


def words_of(name: str) -> list[str]:
    return [word.lower() for word in _WORDS.findall(name)]


@lru_cache(maxsize=4096)
def metric(name: str) -> Metric | None:
    """None for a name that is none of ROLES."""
    name = " ".join(_OF_ITS_OWN.get(name.strip().lower(), name).split())
    if not name or len(name) > NAME_MOST or _BY_TIME.fullmatch(name):
        return None
    over = _OVER.fullmatch(name)
    path = (over.group(1) if over else name).replace(".", "/").split("/")
    last, before = words_of(path[-1]), {word for part in path[:-1] for word in words_of(part)}
    roles = {_CORE[word] for word in last if word in _CORE}
    if len(roles) != 1 or before & _NO_PREFIX:
        return None
    others = [word for word in last if word not in _CORE and not word.isdigit()]
    if any(word not in _NEUTRAL and word != "next" and word != "best" for word in others):
        return None
    if "best" in others and "next" not in others:
        return None
    role, known = roles.pop(), {*last, *before}
    of = EVALUATION if known & _EVALUATION else TRAINING
    score = 2 * bool(known & _EPISODE) + bool(known & _MEAN)
    return Metric(role, name, of, role == SUCCESS and (bool(known & _PERCENT) or "%" in name), score)


@lru_cache(maxsize=4096)
def step_unit(name: str) -> tuple[str, int] | None:
    """What a name counts, of UNITS, and a number that is lower the more surely it does. None: it counts no steps."""
    if not name or len(name) > NAME_MOST:
        return None
    words = words_of(re.sub(r"(?i)time[ _]steps?", "timesteps", name.rpartition("/")[2] or name))
    units = [_STEP_CORE[word] for word in words if word in _STEP_CORE]
    rest = [word for word in words if word not in _STEP_CORE]
    if len(set(units)) != 1 or any(word not in _STEP_NEUTRAL and not word.isdigit() for word in rest):
        return None
    rank = 0 if {*words} & _WHOLE_STEPS else 2 if name.startswith("_") else 1
    return units[0], rank


def is_evaluation(text: str) -> bool:
    """Whether a path or a heading names an evaluation."""
    return bool({*words_of(text)} & _EVALUATION)


# Numbers

NUMBER = (
    r"[-+−]?(?:(?:[0-9]{1,20}(?:[.,_][0-9]{1,30})*\.?|\.[0-9]{1,30})(?:[eE][-+]?[0-9]{1,4})?|(?i:nan|inf|infinity)\b)"
)
_SIZES = {"k": 1e3, "m": 1e6, "b": 1e9, "g": 1e9}
_TRUTH = {"true": 1.0, "false": 0.0}
_THOUSANDS = re.compile(r"[-+]?[0-9]{1,3}(?:[,_][0-9]{3})+(?:\.[0-9]*)?")
_POINT = re.compile(r"[0-9]{1,3}\.[0-9]{3}")
_POINTS = re.compile(r"[-+]?[0-9]{1,3}(?:\.[0-9]{3}){2,}(?:,[0-9]+)?")
_DECIMAL_COMMA = re.compile(r"[-+]?[0-9]+,[0-9]+(?:[eE][-+]?[0-9]+)?")
_PLAIN = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[-+]?(?i:nan|inf|infinity)")


def number(
    text: str, size: str = "", *, whole: bool = False, commas: bool = False, points: bool = False
) -> float | None:
    """None for what is no number, or one of two. `size`: the letter behind it. `whole`: it counts something, so that a
    comma before three digits groups them; elsewhere it could also be a decimal comma, and only other numbers beside it
    tell: those with decimal `commas`, or with decimal `points`. A point before three digits of what counts is only
    clear if other numbers have decimal `commas`."""
    plain = text.strip().replace("−", "-")
    if "," not in plain and "_" not in plain and plain.isascii() and not (whole and "." in plain):
        try:
            return float(plain) * _SIZES.get(size.lower(), 1.0)
        except ValueError:
            pass
    if _THOUSANDS.fullmatch(plain):
        below_one = plain.lstrip("+-").startswith("0")
        unclear = not whole and plain.count(",") == 1 and "." not in plain and not below_one
        if unclear and commas == points:
            return None
        decimal = not whole and (below_one or (unclear and commas))
        plain = plain.replace(",", "." if decimal else "").replace("_", "")
    elif whole and _POINT.fullmatch(plain):
        if not commas:
            return None
        plain = plain.replace(".", "")
    elif _POINTS.fullmatch(plain):
        plain = plain.replace(".", "").replace(",", ".")
    elif _DECIMAL_COMMA.fullmatch(plain):
        plain = plain.replace(",", ".")
    if not _PLAIN.fullmatch(plain):
        return None
    return float(plain) * _SIZES.get(size.lower(), 1.0)


def step(value: object) -> float | None:
    """A number that may be a step: not negative, and finite."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if 0 <= found < 1e18 and not math.isnan(found) else None


def value(found: object, *, whole: bool = False) -> float | None:
    """A value of a field: a number, a truth value, or a text that is a number. None for anything else."""
    if isinstance(found, (bool, int, float)):
        try:
            return float(found)
        except OverflowError:
            return None
    if isinstance(found, str) and 0 < len(found) < 64:
        text = found.strip()
        if text.lower() in _TRUTH:
            return _TRUTH[text.lower()]
        size = text[-1:] if text[-1:].lower() in _SIZES and text[:1] not in "in" else ""
        return number(text[: len(text) - len(size)].strip("%$ "), size, whole=whole)
    return None
