"""Checks the two axes, what selects combos, how combos are cut and repeated, and comparisons that end early."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from comborun.errors import Problem
from comborun.grid.combos import MOST_COMBOS, Combo
from comborun.grid.keys.axes import AXES, AXIS_OF, ComboMatch, StopKeys
from comborun.model.command import BY_SEED, placeholders
from comborun.rules.following import POLICY
from comborun.text import did_you_mean

if TYPE_CHECKING:
    from comborun.grid.draft import Draft, Met, Path
    from comborun.grid.keys.grid_file import GridFile, SettingKeys

_OF_TRAINING = "the checkpoints of a training get their names during the run; environments can be named"
_EXAMPLES = {"policies": "[flat, rough]", "environments": "[grass, stairs]"}


def axis_problems(draft: Draft) -> Iterator[Problem]:
    """Missing, empty or too long axes, repeated names, entries that match nothing, and sessions with the same name."""
    for kind, axis in AXIS_OF.items():
        names = draft.names[kind]
        if not names and axis not in draft.broken:
            if axis in draft.source.root:
                yield draft.at_value((axis,), f"`{axis}` is empty", "a grid needs at least one")
            else:
                yield draft.at_key((), f"`{axis}` is missing", f"such as `{axis}: {_EXAMPLES[axis]}`")
        for index, name in enumerate(names):
            if (first := names.index(name)) != index:
                line = draft.source.key_place(axis, first).line
                yield draft.at_key((axis, index), f"`{axis}` names `{name}` twice", f"the first is in line {line}")
    count = len(draft.file.policies) * len(draft.file.environments)
    if count > MOST_COMBOS:
        message = f"{count:,} combos are more than comborun handles ({MOST_COMBOS:,})"
        yield draft.at_key((), message, "cut the grid into several")
    yield from _match_problems(draft)
    yield from _session_problems(draft)


def _match_problems(draft: Draft) -> Iterator[Problem]:
    for path, match in _matches(draft.file):
        if not (match.policy or match.environment):
            if path[0] not in draft.broken:
                message = f"an entry of `{path[0]}` that names no policy and no environment"
                when = "when: " if path[-1] == "when" else ""
                yield draft.at_value(path, message, f"`{when}{{policy: ..., environment: ...}}`, or one of the two")
            continue
        unknown = [
            problem
            for kind in AXIS_OF
            for index, name in enumerate(getattr(match, kind))
            for problem in _unknown(draft, kind, name, (*path, kind, index))
        ]
        yield from unknown
        # include and exclude are matched against the whole product, so their names always exist
        lost = path[0] == "overrides" and not any(match.meets(one.policy, one.environment) for one in draft.combos)
        if lost and draft.combos and not unknown and not draft.broken.intersection(AXES):
            message = f"an entry of `{path[0]}` that matches no combo"
            yield draft.at_value(path, message, "`exclude` removes all of them")

    for index, entry in enumerate(draft.file.overrides):
        if entry.model_fields_set <= {"when"} and "overrides" not in draft.broken:
            message = "an entry of `overrides` that changes nothing"
            yield draft.at_value(("overrides", index), message, "add a setting to it")


def _matches(file: GridFile) -> Iterator[tuple[Path, ComboMatch]]:
    yield from ((("include", index), match) for index, match in enumerate(file.include))
    yield from ((("exclude", index), match) for index, match in enumerate(file.exclude))
    yield from ((("overrides", index, "when"), entry.when) for index, entry in enumerate(file.overrides))


def _unknown(draft: Draft, kind: str, name: str, path: Path) -> Iterator[Problem]:
    """A name at `path` that no policy, or no environment, has."""
    known = draft.names[kind]
    if name not in known and AXIS_OF[kind] not in draft.broken:
        hint = _OF_TRAINING if known == [POLICY] else did_you_mean(name, known)
        yield draft.at_value(path, f"there is no {kind} `{name}`", hint)


def _session_problems(draft: Draft) -> Iterator[Problem]:
    """A grid without combos, and combos whose sessions would have the same name."""
    if not draft.combos and draft.file.exclude and draft.file.policies and draft.file.environments:
        yield draft.at_key(("exclude",), "`exclude` leaves no combo", "leave one in")
    first: dict[str, Combo] = {}
    collisions: dict[Path, tuple[Combo, Combo]] = {}
    for combo in draft.combos:
        other = first.setdefault(combo.session.casefold(), combo)
        if other is not combo:
            kind = "policy" if other.policy != combo.policy else "environment"
            place = draft.names[kind].index(getattr(combo, kind).name)
            collisions.setdefault((AXIS_OF[kind], place), (other, combo))
    for path, (other, combo) in collisions.items():
        message = f"`{other.label}` and `{combo.label}` would both run in the session `{combo.session}`"
        hint = "session names contain A-Z, a-z, 0-9, _ and - only: rename one of them"
        if other.session != combo.session:
            message = f"`{other.label}` and `{combo.label}` would run in sessions whose names differ only by case"
            hint = "they would be one folder on a Mac, which copies their records: rename one of them"
        yield draft.at_key(path, message, hint)


_RANGE = "pass it, such as `--first {first_episode} --episodes {episodes}`"


def cut_problems(draft: Draft) -> Iterator[Problem]:
    if draft.broken:
        return
    message = "`block`: the command of {} takes no range of episodes"
    yield from draft.wrong(lambda it: _blocks(it) > 1 and not it.ranged, ("block",), message, _RANGE)
    if (count := sum(_blocks(combo.settings) for combo in draft.combos)) > MOST_COMBOS:
        message = f"`block`: {count:,} sessions are more than comborun handles ({MOST_COMBOS:,})"
        yield draft.at_key(("block",), message, "make the blocks larger")
    at, whole = draft.set_at("shards"), {None, 1}
    cut = draft.where(lambda it: it.shards not in whole and not it.together)
    both = [combo for combo in cut if combo.settings.block]
    hint = "`block` for comparisons that stop early, `shards` to fill the host"
    yield from draft.for_combos(both, at, "`shards` and `block` both cut {}: keep one", hint)
    possible, how = draft.about.shards if draft.about else (True, "")
    unable = [combo for combo in cut if not (possible and combo.settings.ranged)]
    hint = f"its preset says: {how}" if how else _RANGE
    yield from draft.for_combos(unable, at, "`shards`: the command of {} takes no range of episodes", hint)
    endless = [] if unable else [combo for combo in cut if not combo.settings.episodes]
    yield from draft.for_combos(
        endless, at, "`shards`: there is no number of episodes for {}", "such as `episodes: 100`"
    )


def seed_problems(draft: Draft) -> Iterator[Problem]:
    """`seeds` that can't repeat a combo, or would repeat exactly the same episodes."""
    if draft.broken:
        return
    at, seeded = draft.set_at("seeds"), draft.where(lambda it: it.seeds)
    for needed, message, hint in _SEEDS_NEED:
        lacking = [combo for combo in seeded if not needed(combo.settings)]
        yield from draft.for_combos(lacking, at, f"`seeds`: {message}", hint)
    if (count := sum(len(combo.settings.seeded) for combo in draft.combos)) > MOST_COMBOS:
        message = f"`seeds`: {count:,} sessions are more than comborun handles ({MOST_COMBOS:,})"
        yield draft.at_key(at, message, "cut the grid into several")


_SEEDS_NEED: tuple[tuple[Met, str, str], ...] = (
    (lambda it: len({*it.seeds}) == len(it.seeds), "a seed occurs twice for {}", "each repeats the combo once"),
    (lambda it: it.seed is None, "{} has a `seed` too", "leave `seed` out"),
    (lambda it: it.episodes, "there is no number of episodes for {}", "such as `episodes: 100`"),
    (lambda it: it.unit == "episode", "{} counts steps, but seeds repeat episodes", "make a policy for each seed"),
    (
        lambda it: {"seed", BY_SEED} & {*placeholders(it.command_text)},
        "the command of {} takes no {seed}: every repeat would be the same",
        "pass it, such as `--seed {seed}`",
    ),
)


def _blocks(settings: SettingKeys) -> int:
    return -(-(settings.episodes or 1) // (settings.block or settings.episodes or 1))


def stopping_problems(draft: Draft) -> Iterator[Problem]:
    stop, at = draft.file.stop_early, ("stop_early",)
    if stop is None or draft.broken:
        return
    if draft.about and draft.about.unpaired:
        message = f"`stop_early` compares pairs of episodes, but there are none: {draft.about.unpaired}"
        yield draft.at_key(at, message, "leave it out: then all episodes run and are compared without pairs")
    found = [*_comparison_problems(draft, stop), *_metric_problems(draft, stop)]
    yield from found
    compared = [combo for combo in draft.combos if _compared(stop, combo)]
    if not found and not _meeting(stop, compared):
        yield draft.at_key(at, "`stop_early`: no environment has two policies to compare")
    for need, message, hint in _NEEDS:
        lacking = [combo for combo in compared if not need(combo.settings)]
        yield from draft.for_combos(lacking, at, f"`stop_early` needs {message}; this is missing for {{}}", hint)


_NEEDS: tuple[tuple[Met, str, str], ...] = (
    (lambda it: it.episodes, "a number of episodes", "such as `episodes: 100`"),
    (lambda it: it.rules.has_records, "records", "say in `results` where they are"),
    (lambda it: it.ranged, "a program that takes a range of episodes", _RANGE),
    (
        lambda it: "seed" in placeholders(it.command_text),
        "a program that takes a {seed} and starts an episode in the same way for every policy",
        "pass it, such as `--seed {seed}`; records must have each episode's seed",
    ),
    (
        lambda it: it.block is not None,
        "`block`, since only sessions that have not begun can be left out",
        "such as `block: 10`: the episodes of one session",
    ),
)


def _comparison_problems(draft: Draft, stop: StopKeys) -> Iterator[Problem]:
    seen: set[frozenset[str]] = set()
    for index, pair in enumerate(stop.comparisons or ()):
        path = ("stop_early", "comparisons", index)
        for side, name in enumerate(pair):
            yield from _unknown(draft, "policy", name, (*path, side))
        a, b = pair
        if a == b:
            yield draft.at_value(path, f"`{a}` is compared with itself", "name two policies")
        elif frozenset(pair) in seen:
            yield draft.at_value(path, f"`{a}` and `{b}` are compared twice", "each pair counts once")
        seen.add(frozenset(pair))
    for name in stop.environments or ():
        yield from _unknown(draft, "environment", name, ("stop_early", "environments"))


def _metric_problems(draft: Draft, stop: StopKeys) -> Iterator[Problem]:
    if not stop.metric:
        return
    for key in ("futility", "width"):
        if getattr(stop, key):
            message = f"`{key}` is of success rates, and `metric` compares `{stop.metric}`"
            yield draft.at_key(("stop_early", key), message, "leave out one of them")
    for combo in draft.combos:
        metrics = combo.settings.rules.metrics
        if metrics and stop.metric not in metrics:
            message = f"`stop_early` compares `{stop.metric}`, which is not among `results.metrics`"
            yield draft.at_value(
                ("stop_early", "metric"), message, did_you_mean(stop.metric, metrics) or "add it there"
            )
            return


def _compared(stop: StopKeys, combo: Combo) -> bool:
    named = stop.comparisons is None or any(combo.policy.name in pair for pair in stop.comparisons)
    return named and (stop.environments is None or combo.environment.name in stop.environments)


def _meeting(stop: StopKeys, combos: Sequence[Combo]) -> bool:
    """Whether any comparison has both of its policies in one environment."""
    found = {combo.key for combo in combos}
    environments = {environment for _, environment in found}
    if stop.comparisons is None:
        return len(found) > len(environments)
    return any((a, one) in found and (b, one) in found for one in environments for a, b in stop.comparisons)
