"""Finds which combo each file of a folder belongs to, by its path and by what all files hold. Pure.

A folder's name may be a task's, and two runs may lie in places whose paths don't distinguish them. Episodes of two runs
are never joined into one.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from comborun.model.attempt import Aggregate, EpisodeRecord
from comborun.model.work import Combo
from comborun.reporter.evidence.starts import RUN
from comborun.reporter.evidence.states import plain
from comborun.reporter.records.reading import UNNAMED, Reading
from comborun.reporter.text import combo_name
from comborun.rules.facts import Fact
from comborun.rules.results import formats
from comborun.rules.results.fields import ENVIRONMENT, POLICY
from comborun.text import natural
from comborun.words import say

_HELD = (
    r"(?:(?:attempt|episode|rank|shard|part|version|run|job|trial|worker|rollout|session|record|row|result|log|metric|score"
    r"|stat|statistic|output|out|eval|evaluation|experiment|video|report)s?|data|(?:trajector|summar|histor)(?:y|ies))"
)
"""words for what a file or a folder holds, whatever the policy and the environment"""
_SAYS_NOTHING = re.compile(
    rf"(?:(?:per|all|final|full|raw|test|success)[-_ ])*{_HELD}(?:[-_ ](?:{_HELD}|info|rates?))*|success[-_ ]rates?"
    r"|(?:attempt|episode|rank|shard|part|version|run|job|trial|worker)[-_]?\d+|seed[-_]?\d+|slurm(?:[-_]\d+)*"
    r"|_results?|_resume.*|all|running|stdout|stderr|nohup|console|main|client"
    r"|eval_embodiment|cosmos_log|detail_info|arena_experiment_result"
    r"|\d[\d_:.T-]*|episode_results_rebuild\d+|episode_\d+_(?:final_)?res",
    re.IGNORECASE,
)
_REPLICA = re.compile(
    r"(?:(?:train|eval|training)[-_])?(?:(?:seed|run|rep|replica|replicate|repeat)[-_=]?\d+"
    r"|(?:rep|replica|replicate|repeat)[-_=][a-z])",
    re.IGNORECASE,
)
"""names of runs of one policy side by side"""
_RUN_IN_NAME = re.compile(rf"(?<![A-Za-z0-9]){_REPLICA.pattern}(?![A-Za-z0-9])", re.IGNORECASE)
"""the same within a name: `results_seed0`"""
_TASK = re.compile(
    r"(?:task|scene|instance|layout|variation|variant|case|level|map|house|room)s?(?:_?id)?[-_=]?\d+", re.IGNORECASE
)
"""names of parts of an environment, each of which numbers its own episodes"""
_SHARD = re.compile(r"(?:(?P<name>.*?)[-_.])?(?:rank|shard|worker|proc|process|gpu)[-_=]?\d+", re.IGNORECASE)
"""names of what the processes of one run wrote"""
_RLINF = re.compile(r"\d{8}-\d\d:\d\d:\d\d-(.+)")
_MANISKILL = re.compile(r"(.+?)__(.+)__\d+__\d+")
_OPENVLA = re.compile(r"EVAL-(?P<suite>[^-]+)-(?P<family>.+?)-\d{4}_\d\d_\d\d-\d\d_\d\d_\d\d(?:--(?P<note>.+))?")
_EMBODIED_BENCH = re.compile(r"eb_[a-z]+")


def combo_of_path(path: str) -> tuple[str, str]:
    """Policy and environment of a file that names neither.

    The environment is the file's name or, if that says nothing (`log`), the innermost folder whose name says something.
    The policy is the next folder outward that is called otherwise.
    """
    names = saying_names(path)
    names = tuple(one for one, inner in zip(names, (*names, "")[1:], strict=True) if one.casefold() != inner.casefold())
    for name in reversed(names):
        if match := _MANISKILL.fullmatch(name):
            return match[2], match[1]
    outer, inner = (UNNAMED, UNNAMED, *names)[-2:]
    if match := _OPENVLA.fullmatch(inner):
        family = f"{match['family']}--{match['note']}" if match["note"] else match["family"]
        folders = (name for name in reversed(names[:-1]) if name.casefold() != match["suite"].casefold())
        return next(folders, family), match["suite"]
    if len(names) > 2 and _EMBODIED_BENCH.fullmatch(names[-3]):  # eb_alfred/{model}_{experiment}/{eval set}/results/
        return outer, f"{names[-3]}/{inner}"
    return outer, inner


def policy_of_path(path: str, environments: Collection[str] = ()) -> str:
    """Of a file that names only its environment: the innermost folder that is not a task, else the file's own name.
    Folders called like one of `environments`, or like the task in it (`pick` of `env/pick`), are tasks."""
    tasks = {name.casefold() for environment in environments for name in (environment, environment.rpartition("/")[2])}
    folders = saying_names(f"{PurePosixPath(path).parent}/out")
    candidates = (name for name in reversed(folders) if name.casefold() not in tasks)
    return next(candidates, (UNNAMED, *saying_names(path))[-1])


def saying_names(path: str) -> tuple[str, ...]:
    """The names in a path that may be of a policy or an environment, outward ones first."""
    pure = PurePosixPath(path)
    found = [match[1] if (match := _RLINF.fullmatch(part)) else part for part in pure.parent.parts]
    found = [match["name"] or "" if (match := _SHARD.fullmatch(part)) else part for part in (*found, stem_of(pure))]
    return tuple(name for name in found if name and not _SAYS_NOTHING.fullmatch(name))


def stem_of(path: PurePosixPath) -> str:
    """A file's name without its ending: `rows` of `rows.json.gz`."""
    return PurePosixPath(path.stem).stem if path.suffix == ".gz" else path.stem


def combo_of_folder(folder: str) -> tuple[str, str]:
    """{checkpoint}/{scene}/{control}/{env}: an environment in another scene is another environment."""
    parts = PurePosixPath(folder).parts
    if len(parts) >= 4:
        return parts[-4], "/".join(parts[-3:])
    return combo_of_path(f"{folder}/out") if parts else (UNNAMED, UNNAMED)


NAME_COMBO = frozenset({formats.JSONL_ROWS, formats.TABLE, formats.EPISODES, formats.DATABASE, formats.COMPLETION_ROWS})
NAME_ENVIRONMENT = frozenset({formats.JOB_ROWS, formats.EVAL_INFO, formats.TUPLES})
"""formats whose records name their environment, and perhaps no policy; for all others the path names it"""
COLUMNS = {
    POLICY: ("policy", "model", "agent", "policy_name", "model_name", "checkpoint", "ckpt"),
    ENVIRONMENT: ("environment", "env", "task", "env_name", "env_id", "task_name", "scene", "task_suite", "suite"),
}
"""what programs call the columns of names, those that are surest first"""
LEVELS = 2
"""of a path that names a policy and an environment"""
ASIDE, BY_LEVELS, ONE_LEVEL = "file_set_aside", "levels_guessed", "one_level_of_names"
ALL = "*"
"""the name of a file if all names in a folder are episodes"""
_DIGITS = re.compile(r"\d+")

EntryKey = tuple[int, int | None]
"""attempt and episode; None for a count"""


def settle(files: Sequence[Reading]) -> None:
    _set_aside(files)
    _by_levels(files)
    _by_folders(files)
    _by_columns(files)
    tasks = {environment for file in files for _, environment in file.combos}
    for file in files:
        if file.format in NAME_ENVIRONMENT:  # its own folder may have the name of another file's environment
            outward = policy_of_path(file.path, tasks)
            by_path = (combo for combo in file.combos if combo[0] == policy_of_path(file.path, {combo[1]}) != outward)
            if renamed := {combo: (outward, combo[1]) for combo in by_path}:
                file.rename(renamed)
    own: dict[int, dict[Combo, Combo]] = {}
    shared = _shares(files)
    apart = {combo: _parts(shares) for combo, shares in shared.items() if _clash(shares)}
    by_words = _tasks_by_words(shared, apart)
    for combo, shares in shared.items():
        if combo in by_words:
            names = _of_tasks(combo, by_words[combo])
        elif combo in apart:
            names = _names_of_runs(combo, apart[combo])
        else:
            _name_run(combo, shares)
            continue
        for share, name in names:
            own.setdefault(id(share.file), {})[combo] = name
    for file in files:
        if id(file) in own:
            file.rename(own[id(file)])


def _of_paths(files: Iterable[Reading]) -> list[tuple[Reading, tuple[str, ...]]]:
    """The files of whose combo only the path says something, and the names in it."""
    kinds = {POLICY, ENVIRONMENT}
    return [
        (file, saying_names(file.path))
        for file in files
        if file.entries and {kind for kind, _ in file.guessed} == kinds
    ]


def _set_aside(files: Sequence[Reading]) -> None:
    """Files that have the path of others but for one folder more, as a `debug` or an `old` may be: they are neither a
    policy nor an environment by themselves, so a person is asked."""
    found = _of_paths(files)
    known = {names: file for file, names in found}
    for file, names in found:
        for at in range(len(names)) if len(names) > LEVELS else ():
            if beside := known.get((*names[:at], *names[at + 1 :])):
                file.records, file.aggregates, file.counts = [], [], []
                file.defect(0, say(Fact(ASIDE, file=beside.path, folder=names[at])))
                break


def _by_levels(files: Sequence[Reading]) -> None:
    """Of three levels and more in which paths differ, or that the only path has, the outermost is the policy's and the
    others together are the environment's. Nothing says so, so a person is asked."""
    found = _of_paths(files)
    depths = {len(names) for _, names in found}
    if len(depths) != 1 or any(file.format not in NAME_COMBO for file, _ in found):
        return
    levels = [*zip(*(names for _, names in found), strict=True)]
    differ = [at for at, names in enumerate(levels) if len({*names}) > 1 or len(found) == 1]
    if len(differ) <= LEVELS or len({names for _, names in found}) < len(found):
        return
    for file, names in found:
        policy, environment = names[differ[0]], "/".join(names[at] for at in differ[1:])
        file.rename(dict.fromkeys(file.combos, (policy, environment)))
        file.guessed = {(POLICY, policy), (ENVIRONMENT, environment)}
    policies, first = sorted({*levels[differ[0]]}, key=natural), found[0][0]
    fields = {"policies": policies, "levels": len(differ), "environment": next(iter(first.combos))[1]}
    first.defect(0, say(Fact(BY_LEVELS, **fields)))


def _by_folders(files: Sequence[Reading]) -> None:
    """A file name that every folder has tells no environments apart: those are the folders, if two of them say
    something."""
    named = [file for file in files if file.entries]
    paths = [PurePosixPath(file.path) for file in named]
    alike = len({stem_of(path) for path in paths}) == 1 < len({path.parent for path in paths}) == len(paths)
    if not alike or any(
        (ENVIRONMENT, stem_of(path)) not in file.guessed for file, path in zip(named, paths, strict=True)
    ):
        return
    if any(len(saying_names(file.path)) < 3 for file in named):
        return
    for file, path in zip(named, paths, strict=True):
        outer, inner = combo_of_path(f"{path.parent}/out")
        policies = {policy: outer for kind, policy in file.guessed if kind == POLICY}
        file.translate({POLICY: policies, ENVIRONMENT: {stem_of(path): inner}})
        file.guessed = {(POLICY, name) for name in policies.values()} | {(ENVIRONMENT, inner)}


def _by_columns(files: Sequence[Reading]) -> None:
    """Paths name the environment first where columns of some rows say so, such as `env` or `model`, and none says
    otherwise."""
    guessed = [file for file in files if {kind for kind, _ in file.guessed} == {POLICY, ENVIRONMENT}]
    if {order for file in guessed for order in _orders(file)} != {(ENVIRONMENT, POLICY)}:
        return
    for file in guessed:
        file.rename({(outer, inner): (inner, outer) for outer, inner in file.combos})
        file.guessed = {(POLICY if kind == ENVIRONMENT else ENVIRONMENT, name) for kind, name in file.guessed}


def _orders(file: Reading) -> Iterator[tuple[str, str]]:
    """What the outer and the inner name of its path are, as a column of its first row tells."""
    for combo, record in {one.combo: one for one in reversed(file.records)}.items():
        for kind, other in ((POLICY, ENVIRONMENT), (ENVIRONMENT, POLICY)):
            values = {str(record.extra.get(name, "")).casefold() for name in COLUMNS[kind]}
            at = [place for place, name in enumerate(combo) if name.casefold() in values]
            if len(at) == 1:
                yield (other, kind) if at[0] else (kind, other)


@dataclass(frozen=True)
class _Share:
    file: Reading
    path: PurePosixPath
    entries: Mapping[EntryKey, EpisodeRecord | Aggregate]

    @property
    def naming(self) -> bool:
        """Whether its records name the combo; then equal files are copies."""
        return self.file.format in NAME_COMBO

    @property
    def names(self) -> tuple[str, ...]:
        """The parts of its path, without the file's ending."""
        return (*self.path.parts[:-1], stem_of(self.path))

    @property
    def process(self) -> tuple[str, ...]:
        """The parts of its path that say which process wrote it."""
        return tuple(part for part in self.names if _SHARD.fullmatch(part))

    def of_one_run(self, other: _Share, key: EntryKey) -> bool:
        """Whether both may describe an episode of the same run."""
        alike = _result(self.entries[key]) == _result(other.entries[key]) and self.process == other.process
        return alike and ((self.naming and other.naming) or self.beside(other))

    def beside(self, other: _Share) -> bool:
        """Whether two files in one folder are of one run: different kinds are; `seed1.log` and `seed2.log` are not."""
        kinds = {_DIGITS.sub("", share.path.name) for share in (self, other)}
        return self.path.parent == other.path.parent and len(kinds) > 1


def content(record: EpisodeRecord) -> tuple[object, ...]:
    return (record.verdict, record.seed, dict(record.metrics), dict(record.extra))


def _result(one: EpisodeRecord | Aggregate) -> tuple[object, ...]:
    return content(one) if isinstance(one, EpisodeRecord) else (one.successes, one.episodes)


def _shares(files: Sequence[Reading]) -> dict[Combo, list[_Share]]:
    shares: defaultdict[Combo, list[_Share]] = defaultdict(list)
    for file in files:
        path = PurePosixPath(file.path, ALL if file.format == formats.NAMED else "")
        by_combo: defaultdict[Combo, dict[EntryKey, EpisodeRecord | Aggregate]] = defaultdict(dict)
        for one in file.entries:
            episode = one.episode if isinstance(one, EpisodeRecord) else None
            by_combo[one.combo].setdefault((one.attempt, episode), one)
        for combo, entries in by_combo.items():
            shares[combo].append(_Share(file, path, entries))
    return shares


def _clash(shares: Iterable[_Share]) -> bool:
    """Whether two of these files can't be of one run: both have the same episode, or one of them has only counts."""
    first_with: dict[EntryKey, _Share] = {}
    counting: dict[int, _Share] = {}
    listing: dict[int, _Share] = {}
    for share in shares:
        for key in share.entries:
            first = first_with.setdefault(key, share)
            if first is not share and not first.of_one_run(share, key):
                return True
            (counting if key[1] is None else listing).setdefault(key[0], share)
    both = ((share, listing[attempt]) for attempt, share in counting.items() if attempt in listing)
    return any(count is not episodes and not count.beside(episodes) for count, episodes in both)


_Parts = Sequence[tuple[str, Sequence[_Share]]]
"""the files of each run or task of a combo, by what its path has and the others' paths lack"""


def _parts(shares: Sequence[_Share]) -> _Parts:
    """By the outermost folders that distinguish the runs."""
    groups: dict[tuple[str, ...], list[_Share]] = {}
    for depth in range(1, max(len(share.path.parts) for share in shares) + 1):
        groups = {}
        for share in shares:
            groups.setdefault(share.path.parts[:depth], []).append(share)
        if not any(_clash(group) for group in groups.values()):
            break
    labels = _labels(list(groups), {share.path.parts for share in shares})
    return [*zip(labels, groups.values(), strict=True)]


def _names_of_runs(combo: Combo, parts: _Parts) -> Iterator[tuple[_Share, Combo]]:
    """Name the policy of each run, or of tasks the environment. Runs that say so are joined."""
    labels, groups = [label for label, _ in parts], [group for _, group in parts]
    shards, runs = all(map(_SHARD.fullmatch, labels)), _runs_by_field(groups) or _replicas(labels)
    joined = combo[0] != UNNAMED and (shards or runs)
    if joined and not any(None in key for group in groups for key in _keys(group)):
        _join(combo, [*zip(runs or labels, groups, strict=True)], runs=not shards)
        return
    if tasks := _tasks(combo, parts):
        yield from _of_tasks(combo, tasks)
        return
    firsts = [group[0].file for group in groups]
    asked = combo[0] == UNNAMED
    for label, group in parts:
        policy = label if combo[0] == UNNAMED else f"{combo[0]} ({label})"
        yield from ((share, (policy, combo[1])) for share in group)
        own = group[0].file
        other = next(file for file in firsts if file is not own).path
        reason = f"of one combo with {other}, {combo_name(*combo)}, and not of one run: its policy is called"
        own.defect(0, f"{reason} {policy!r}{'' if asked else _ARE_RUNS}")
        asked = True


_ARE_RUNS = (
    "; are these runs of one policy? Then call their files or folders seed0 and seed1, or give a field `train_seed`"
)


def _replicas(labels: Sequence[str]) -> list[str]:
    """The names of runs, if they are all in which these differ: `results_seed0` and `results_seed1`."""
    found = [*map(_run_in, labels)]
    around = {one and (one.string[: one.start()], one.string[one.end() :]) for one in found}
    return [one[0] for one in found if one] if len(around) == 1 else []


def _run_in(name: str) -> re.Match[str] | None:
    """The last name of a run in a name."""
    return next(reversed([*_RUN_IN_NAME.finditer(name)]), None)


def _runs_by_field(groups: Sequence[Sequence[_Share]]) -> list[str]:
    """Names of runs, if a field such as `train_seed` has one value in each, and another in the others."""
    told: list[dict[str, set[object]]] = []
    for group in groups:
        values: dict[str, set[object]] = {}
        for record in (one for share in group for one in share.entries.values() if isinstance(one, EpisodeRecord)):
            for name in filter(RUN.fullmatch, (*record.metrics, *record.extra)):
                values.setdefault(name, set()).add(plain(record.field(name)))
        told.append({name: found for name, found in values.items() if len(found) == 1})
    for name in sorted(set(told[0]).intersection(*told)):
        runs = [value for found in told for value in found[name]]
        if len(set(runs)) == len(runs) and None not in runs:
            return [f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}" for value in runs]
    return []


def _without_names(combo: Combo, label: str) -> str:
    return re.sub(rf"^(?:{re.escape(combo[0])}|{re.escape(combo[1])})[-_.]", "", label)


def _tasks(combo: Combo, parts: _Parts) -> _Parts:
    """The parts by their numbers of tasks, if all are called so."""
    tasks = [(_without_names(combo, label), group) for label, group in parts]
    return tasks if UNNAMED not in combo and all(_TASK.fullmatch(label) for label, _ in tasks) else []


def _tasks_by_words(shared: Mapping[Combo, Sequence[_Share]], apart: Mapping[Combo, _Parts]) -> dict[Combo, _Parts]:
    """Parts that are tasks because another policy has a file or folder of the same name: `pi0/pick_cup.jsonl` and
    `act/pick_cup.jsonl`. Names of runs, processes and dates are no tasks."""
    named: dict[Combo, _Parts] = {
        combo: [(_without_names(combo, label), group) for label, group in parts]
        for combo, parts in apart.items()
        if UNNAMED not in combo and not _runs_by_field([group for _, group in parts])
    }
    found: dict[Combo, _Parts] = {}
    for combo, parts in named.items():
        labels = {label for label, _ in parts}
        kinds = (_REPLICA, _SHARD, _SAYS_NOTHING)
        if _replicas([*labels]) or any(kind.fullmatch(one) for one in labels for kind in kinds):
            continue
        others = [other for other in shared if other[1] == combo[1] and other[0] != combo[0]]
        for other in others:
            if other in named and labels.intersection(label for label, _ in named[other]):
                found[combo] = parts
            elif other not in apart and len(single := labels & _names_in(other, shared[other])) == 1:
                found[combo] = parts
                found[other] = [(single.pop(), shared[other])]
    return found


def _names_in(combo: Combo, shares: Sequence[_Share]) -> set[str]:
    """The parts that all paths of a combo have."""
    first, *others = ({_without_names(combo, name) for name in share.names} for share in shares)
    return first.intersection(*others) - {*combo}


def _of_tasks(combo: Combo, parts: _Parts) -> Iterator[tuple[_Share, Combo]]:
    for label, group in parts:
        task = combo[0], f"{combo[1]}/{label}"
        yield from ((share, task) for share in group)
        group[0].file.defect(0, f"a task of {combo_name(*combo)}: its environment is called {task[1]!r}")


def _name_run(combo: Combo, shares: Sequence[_Share]) -> None:
    """If all files of a combo lie in one folder that is called like a run, or are, note that it is of that run."""
    runs = {next((run[0] for part in reversed(share.names) if (run := _run_in(part))), "") for share in shares}
    name, *others = runs
    if name and not others:
        episodes = range(1 + max(key[1] or 0 for key in _keys(shares)))
        for share in shares:
            share.file.runs[combo] = name, episodes


def _keys(shares: Iterable[_Share]) -> set[EntryKey]:
    return {key for share in shares for key in share.entries}


def _join(combo: Combo, parts: _Parts, *, runs: bool) -> None:
    """Runs of one policy, or the processes of one run, are one policy: the episodes of each are numbered after those of
    the one before."""
    length = 1 + max(key[1] or 0 for _, shares in parts for key in _keys(shares))
    for place, (label, shares) in enumerate(sorted(parts, key=lambda part: natural(part[0]))):
        episodes = range(place * length, (place + 1) * length)
        for share in shares:
            share.file.join(combo, label if runs else "", episodes)
        if place:
            what = f"another {'run' if runs else 'process'} of {combo_name(*combo)}, {label!r}"
            reason = f"{what}: joined with the others, its episodes count from"
            shares[0].file.defect(0, f"{reason} {episodes.start}")


def _labels(prefixes: Sequence[tuple[str, ...]], files: set[tuple[str, ...]]) -> list[str]:
    """The part of each prefix that the others don't share."""
    shared = {at for at in range(min(map(len, prefixes))) if len({prefix[at] for prefix in prefixes}) == 1}
    own = [PurePosixPath(*(part for at, part in enumerate(prefix) if at not in shared)) for prefix in prefixes]
    short = [str(path.with_suffix("") if prefix in files else path) for prefix, path in zip(prefixes, own, strict=True)]
    return short if len(set(short)) == len(short) else [str(path) for path in own]
