"""What the folders of all files mean together, where only paths name policies and environments: by the levels in which
paths differ, and by columns that show the order. A defect tells what nothing decides, so that a person can. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from comborun.reporter.evidence.context import PART
from comborun.reporter.records.path_parts import COLUMNS, combo_of_path, saying_names, stem_of
from comborun.reporter.records.reading import UNNAMED, Reading
from comborun.rules.facts import Fact
from comborun.rules.results import formats
from comborun.rules.results.fields import ENVIRONMENT, POLICY
from comborun.text import natural
from comborun.words import say

NAME_COMBO = frozenset({formats.JSONL_ROWS, formats.TABLE, formats.EPISODES, formats.DATABASE, formats.COMPLETION_ROWS})
"""formats whose records may name their combo"""
LEVELS = 2
"""of a path that names a policy and an environment"""
ASIDE, BY_LEVELS, UNEVEN = "file_set_aside", "levels_guessed", "levels_uneven"
ONE_LEVEL, IN_DOUBT = "one_level_of_names", "names_in_doubt"
_SHOWN = 3
_STEP = re.compile(r"(?:checkpoint|ckpt|(?:global_)?step|epoch|iter(?:ation)?)s?[-_=]?\d+[kK]?", re.IGNORECASE)
_ASIDE = re.compile(r"[-_. (]+(?:old|backup|bak|copy|again|debug|te?mp|test|trial[-_]?\d*)\)?$", re.IGNORECASE)


def settle_levels(files: Sequence[Reading]) -> None:
    _set_aside(files)
    _by_levels(files)
    _by_columns(files)
    _in_doubt(files)


def _of_paths(files: Iterable[Reading]) -> list[tuple[Reading, tuple[str, ...]]]:
    """The files whose combo is known only by the places of names in their path, each with these names."""
    found = ((file, saying_names(file.path)) for file in files if file.named_by_path)
    return [(file, names) for file, names in found if combo_of_path(file.path) == (UNNAMED, UNNAMED, *names)[-2:]]


def _set_aside(files: Sequence[Reading]) -> None:
    """Drop the records of files whose path is that of another file and one more folder, such as `debug` or `old`. That
    folder may be neither a policy nor an environment, so a person is asked."""
    found = _of_paths(files)
    known = {names: file for file, names in found}
    for file, names in found:
        for at in range(len(names)) if len(names) > LEVELS else ():
            if beside := known.get((*names[:at], *names[at + 1 :])):
                file.records, file.aggregates, file.counts = [], [], []
                file.defect(0, say(Fact(ASIDE, file=beside.path, folder=names[at])))
                break


def _by_levels(files: Sequence[Reading]) -> None:
    """Name combos by the levels at which paths differ, or by all levels of an only path: the outermost is the policy's,
    together with those that are steps of a training; the others together are the environment's. If there are several
    others, this is a guess, and a person is asked. If one level differs, a file's name that each folder has is no
    environment."""
    found = _of_paths(files)
    depths = {len(names) for _, names in found}
    if len(depths) != 1:
        _tell_uneven(found)
        return
    levels = [*zip(*(names for _, names in found), strict=True)]
    differ = [at for at, names in enumerate(levels) if len({*names}) > 1 or len(found) == 1]
    if len(differ) == 1 and differ[0] < len(levels) - LEVELS and _end_in_file_names(found):
        differ = [*range(len(levels))][-LEVELS - 1 : -1]
    steps = [at for at in differ[1:] if all(map(_STEP.fullmatch, levels[at]))]
    inner = [at for at in range(len(levels)) if at not in differ and at > differ[0]] if steps else []
    inner = inner[:-1] if inner[1:] and _end_in_file_names(found) else inner
    places = [at for at in differ[1:] if at not in steps] or inner[-1:]
    if not places:
        steps, places = [], differ[1:]
    several = len(places) >= LEVELS
    if len(differ) < LEVELS or (several and any(file.format not in NAME_COMBO for file, _ in found)):
        return
    for file, names in found:
        policy, environment = ("/".join(names[at] for at in some) for some in ([differ[0], *steps], places))
        kept = {combo for combo in file.combos if not {*zip((POLICY, ENVIRONMENT), combo, strict=True)} <= file.guessed}
        file.rename(dict.fromkeys(file.combos - kept, (policy, environment)))
        file.guessed = {(POLICY, policy), (ENVIRONMENT, environment)}
    if several:
        first, names = found[0]
        policies = sorted({name for file, _ in found for kind, name in file.guessed if kind == POLICY}, key=natural)
        example = "/".join(names[at] for at in places)
        first.defect(0, say(Fact(BY_LEVELS, policies=policies, levels=len(differ), environment=example)))


def _end_in_file_names(found: Sequence[tuple[Reading, tuple[str, ...]]]) -> bool:
    """Whether the innermost name is everywhere that of the file, not of its folder."""
    return all(stem_of(PurePosixPath(file.path)) == names[-1] for file, names in found)


def _tell_uneven(found: Sequence[tuple[Reading, tuple[str, ...]]]) -> None:
    """Where paths have different numbers of levels, the last two levels name the combo: say so if some have more."""
    common = next(
        (at for at, names in enumerate(zip(*(names for _, names in found), strict=False)) if len({*names}) > 1), 0
    )
    if found and max(len(names) for _, names in found) - common > LEVELS:
        file, names = max(found, key=lambda one: len(one[1]))
        (policy, environment), *_ = sorted(file.combos)
        file.defect(0, say(Fact(UNEVEN, levels=len(names) - common, policy=policy, environment=environment)))


def _by_columns(files: Sequence[Reading]) -> None:
    """Paths name the environment first where columns of some rows say so, such as `env` or `model`, and none says
    otherwise."""
    guessed = [file for file in files if file.named_by_path]
    orders = {order for file in guessed for order in _orders(file)}
    for file in guessed:
        file.order_told = len(orders) == 1
    if orders != {(ENVIRONMENT, POLICY)}:
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


def _in_doubt(files: Sequence[Reading]) -> None:
    """Tell which names of paths may be no names of their own; they are taken as they are. Such a name is another one
    and a word for a part or a repetition (`act_rerun` beside `act`, but not `act_lora`), or it lacks partners that all
    others have (`debug`)."""
    named = [file for file in files if file.named_by_path]
    combos = {combo for file in named for combo in file.combos if UNNAMED not in combo}
    for place, kind in enumerate((POLICY, ENVIRONMENT)):
        partners: dict[str, set[str]] = {}
        for combo in combos:
            partners.setdefault(combo[place], set()).add(combo[1 - place])
        longer = [(name, other) for name in sorted(partners) if (other := _beginning(name, partners))]
        fewer = _with_fewer(partners)
        if longer or fewer:
            doubted = next(name for name in (*(one for one, _ in longer), *fewer))
            file = next(one for one in named if any(combo[place] == doubted for combo in one.combos))
            pairs = [[*pair] for pair in longer[:_SHOWN]]
            file.defect(0, say(Fact(IN_DOUBT, kind=kind, longer=pairs, fewer=fewer[:_SHOWN])))


def _beginning(name: str, names: Collection[str]) -> str:
    """The other name of which this one is made by a word for a part or a repetition; empty if there is none."""
    match = PART.search(name) or _ASIDE.search(name)
    return name[: match.start()] if match and name[: match.start()] in names else ""


def _with_fewer(partners: Mapping[str, set[str]]) -> list[str]:
    """The names that lack partners, if more names, and at least two, have all partners."""
    whole = set[str]().union(*partners.values())
    common = [name for name, own in partners.items() if own == whole]
    fewer = sorted(name for name, own in partners.items() if own != whole)
    return fewer if len(common) > max(1, len(fewer)) else []
