"""What one path says of a combo: which of its parts may be names, and which say only what a file holds, when and by
which process it was written. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import PurePosixPath

from comborun.reporter.records.reading import UNNAMED
from comborun.rules.results.fields import ENVIRONMENT, POLICY

COLUMNS = {
    POLICY: ("policy", "model", "agent", "policy_name", "model_name", "checkpoint", "ckpt"),
    ENVIRONMENT: (
        *("environment", "env", "env_name", "env_id", "environment_name", "environment_id"),
        *("task", "task_name", "scene", "task_suite", "suite"),
    ),
}
"""columns that hold these names, the surest first; they are also the keys in parts of paths such as `env=pick`"""
OF_ENVIRONMENTS = tuple(name for name in COLUMNS[ENVIRONMENT][1:] if name.startswith("env"))
"""columns that name an environment; others, such as `task` or `scene`, may name a part of one"""

_HELD = (
    r"(?:(?:attempt|episode|rank|shard|part|version|run|job|trial|worker|rollout|session|record|row|result|log|metric|score"
    r"|stat|statistic|output|out|eval|evaluation|experiment|video|report|file)s?|data|(?:trajector|summar|histor)(?:y|ies))"
)
"""words for what a file or a folder holds, whatever the policy and the environment"""
SAYS_NOTHING = re.compile(
    rf"(?:(?:per|all|final|full|raw|test|success)[-_ ])*{_HELD}(?:[-_ ](?:{_HELD}|info|rates?))*"
    r"|success(?:es|[-_ ]rates?)?|slurm(?:[-_]\d+)*"
    r"|(?:attempt|episode|rank|shard|part|version|run|job|trial|worker|seed)[-_]?\d+"
    r"|_results?|_resume.*|all|running|stdout|stderr|nohup|console|main|client|multirun|wandb"
    r"|eval_embodiment|cosmos_log|detail_info|arena_experiment_result"
    r"|[\d_:.TZ+ -]*\d[\d_:.TZ+ -]*|episode_results_rebuild\d+|episode_\d+_(?:final_)?res",
    re.IGNORECASE,
)
_DATE = re.compile(
    r"(?<![\dA-Za-z])(?:(?:20\d\d([-_.]?)[01]\d\1[0-3]\d|[0-3]\d([-_.])[01]\d\2(?:20)\d\d)"
    r"(?:[-_T ]+[0-2]\d[-_:.]?[0-5]\d(?:[-_:.]?[0-5]\d(?:\.\d+)?)?(?:Z|[-+][01]\d:?[0-5]\d)?)?"
    r"|[0-2]\d([-:])[0-5]\d\3[0-5]\d|1[5-9]\d{8}(?:\d{3})?)(?![\dA-Za-z])"
)
"""a date, perhaps with a time, or a time, within a name; also seconds since 1970"""
_SEPARATORS = "-_.+ "
_WANDB_RUN = re.compile(r"(?:offline-)?run-\d{8}_\d{6}-\w+")
"""a run of Weights & Biases"""
REPLICA = re.compile(
    r"(?:(?:train|eval|training)[-_])?(?:(?:seed|run|rep|replica|replicate|repeat)[-_=]?\d+"
    r"|(?:rep|replica|replicate|repeat)[-_=][a-z])",
    re.IGNORECASE,
)
"""names of runs of one policy side by side"""
_RUN_IN_NAME = re.compile(rf"(?<![A-Za-z0-9]){REPLICA.pattern}(?![A-Za-z0-9])", re.IGNORECASE)
"""the same within a name: `results_seed0`"""
TASK = re.compile(
    r"(?:task|scene|instance|layout|variation|variant|case|level|map|house|room)s?(?:_?id)?[-_=]?\d+", re.IGNORECASE
)
"""names of parts of an environment, each of which numbers its own episodes"""
SHARD = re.compile(
    r"(?:(?P<name>.*?)[-_.])?(?:(?:rank|shard|worker|proc|process|gpu)[-_=]?\d+|\d+[-_]of[-_]\d+)", re.IGNORECASE
)
"""names of what the processes of one run wrote"""
_CLEANRL = re.compile(r"(?P<environment>.+?)__(?P<policy>.+)__(?P<seed>\d+)__\d+")
_OPENVLA = re.compile(r"EVAL-(?P<suite>[^-]+)-(?P<family>.+?)(?:--(?P<note>.+))?")
_EMBODIED_BENCH = re.compile(r"eb_[a-z]+")


def combo_of_path(path: str) -> tuple[str, str]:
    """Policy and environment of a file that names neither.

    The environment is the file's name or, if that says nothing (`log`), the innermost folder whose name says something.
    The policy is the next folder outward that is called otherwise.
    """
    names = saying_names(path)
    names = tuple(one for one, inner in zip(names, (*names, "")[1:], strict=True) if one.casefold() != inner.casefold())
    for name in reversed(names):
        if match := _CLEANRL.fullmatch(name):
            return match["policy"], match["environment"]
    if told := stated(path):
        others = [UNNAMED, *(name for name in names if not _pairs(name))]
        return told.get(POLICY, others[-1]), told.get(ENVIRONMENT, others[-1])
    outer, inner = (UNNAMED, UNNAMED, *names)[-2:]
    if match := _OPENVLA.fullmatch(inner):
        family = f"{match['family']}--{match['note']}" if match["note"] else match["family"]
        folders = (name for name in reversed(names[:-1]) if name.casefold() != match["suite"].casefold())
        return next(folders, family), match["suite"]
    if len(names) > 2 and _EMBODIED_BENCH.fullmatch(names[-3]):  # eb_alfred/{model}_{experiment}/{eval set}/results/
        return outer, f"{names[-3]}/{inner}"
    return outer, inner


def says_order(path: str) -> bool:
    """Whether it says which of its names is the policy's, as paths of some programs do."""
    return bool(stated(path)) or any(_CLEANRL.fullmatch(one) or _OPENVLA.fullmatch(one) for one in saying_names(path))


def policy_of_path(path: str, environments: Collection[str] = ()) -> str:
    """Of a file that names only its environment: the innermost folder that is not a task, else the file's own name.
    Folders called like one of `environments`, or like the task in it (`pick` of `env/pick`), are tasks."""
    if policy := stated(path).get(POLICY):
        return policy
    tasks = {name.casefold() for environment in environments for name in (environment, environment.rpartition("/")[2])}
    folders = saying_names(f"{PurePosixPath(path).parent}/out")
    candidates = (name for name in reversed(folders) if name.casefold() not in tasks)
    return next(candidates, (UNNAMED, *saying_names(path))[-1])


def stated(path: str) -> dict[str, str]:
    """By kind, the names that parts of a path state: `env=pick,policy=pi0`, as Hydra calls folders."""
    pure = PurePosixPath(path)
    pairs = [pair for part in (*pure.parent.parts, stem_of(pure)) for pair in _pairs(part)]
    named = {key.lstrip("+").removesuffix(".name").rpartition(".")[2].casefold(): value for key, value in pairs}
    found = {kind: next((named[name] for name in names if name in named), "") for kind, names in COLUMNS.items()}
    return {kind: name for kind, name in found.items() if name}


def _pairs(part: str) -> list[tuple[str, str]]:
    split = [one.partition("=") for one in part.split(",")]
    return [(key, value) for key, _, value in split] if all(key and value for key, _, value in split) else []


def saying_names(path: str) -> tuple[str, ...]:
    """The names in a path that may be of a policy or an environment, outward ones first."""
    pure = PurePosixPath(path)
    found = (without_date(part) for part in (*pure.parent.parts, stem_of(pure)))
    found = (match["name"] or "" if (match := SHARD.fullmatch(part)) else part for part in found)
    return tuple(name for name in found if name and not SAYS_NOTHING.fullmatch(name))


def without_date(name: str) -> str:
    """The name without dates and times at its ends; empty if nothing else is in it."""
    if _WANDB_RUN.fullmatch(name):
        return ""
    found = _DATE.search(name)
    if not found or _CLEANRL.fullmatch(name):
        return name
    before, after = name[: found.start()].rstrip(_SEPARATORS), name[found.end() :]
    return without_date(before + after if before and after else before or after.lstrip(_SEPARATORS))


def _undated(label: str) -> tuple[str, ...]:
    return tuple(filter(None, map(without_date, PurePosixPath(label).parts)))


def _dates_in(label: str) -> str:
    """The dates in it, if it has more than these."""
    return (_undated(label) and " ".join(found[0] for found in _DATE.finditer(label))) or label


def stem_of(path: PurePosixPath) -> str:
    """A file's name without its ending: `rows` of `rows.json.gz`."""
    return PurePosixPath(path.stem).stem if path.suffix == ".gz" else path.stem


def combo_of_folder(folder: str) -> tuple[str, str]:
    """{checkpoint}/{scene}/{control}/{env}: an environment in another scene is another environment."""
    parts = PurePosixPath(folder).parts
    if len(parts) >= 4:
        return parts[-4], "/".join(parts[-3:])
    return combo_of_path(f"{folder}/out") if parts else (UNNAMED, UNNAMED)


def run_in(name: str) -> re.Match[str] | None:
    """The last name of a run in a name."""
    return next(reversed([*_RUN_IN_NAME.finditer(name)]), None)


def dated(labels: list[str]) -> list[str]:
    """The dates of runs, if they are all in which these differ."""
    dates = [*map(_dates_in, labels)]
    return dates if len(set(dates)) == len(labels) and len({*map(_undated, labels)}) == 1 else []


def replicas(labels: list[str]) -> list[str]:
    """The names of runs, or the dates, if they are all in which these differ: `results_seed0` and `results_seed1`."""
    named = [*map(_CLEANRL.fullmatch, labels)]
    seeds = [f"seed {one['seed']}" for one in named if one]
    if len(set(seeds)) == len(labels) and len({one and one.group("environment", "policy") for one in named}) == 1:
        return seeds
    if dates := dated(labels):
        return dates
    found = [*map(run_in, labels)]
    around = {one and (one.string[: one.start()], one.string[one.end() :]) for one in found}
    return [one[0] for one in found if one] if len(around) == 1 else []
