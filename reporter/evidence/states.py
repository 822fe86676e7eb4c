"""Fields that tell how an episode started: hashes of its initial state, the state itself, or its number. Pure."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING

from comborun.model.attempt import EpisodeRecord, JsonValue, field_column, held
from comborun.model.work import Combo, grouped
from comborun.rules.facts import Fact

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

STATES = ("initial_state", "init_state")
"""fields that can hold the state itself: lists and objects with fractions; a word or an index is no state"""
HASHES = ("init_hash", "initial_state_hash", "init_state_hash", "first_frame_hash")
HASH_FIELDS = (*HASHES, *STATES)
"""fields that can hold a hash of the initial state, the best evidence first"""
_NUMBERED = re.compile(
    r"(?:init|initial|start|starting)_?(?:(?:state|pose|condition|config|configuration|layout|position)_?)?"
    r"(?:id|idx|index|num|number)",
    re.IGNORECASE,
)
"""fields that number starts: seeds may tell more of them"""
ROUNDED = "states_equal_to_within_rounding"
_FRACTION = re.compile(r"\d\.\d")


def plain(value: JsonValue) -> object:
    """A value that compares and hashes as the JSON value does; None for what says nothing."""
    if isinstance(value, list | dict):
        return json.dumps(_even(value), sort_keys=True, ensure_ascii=False) if value else None
    return None if value == "" else value


_DATED = re.compile(r"(?:.*_)?(?:date|day)s?", re.IGNORECASE)
_CLOCK = re.compile(r"(\d{4}[-/.]?\d{2}[-/.]?\d{2})[T _-]+\d{1,2}[:.h-]?\d{2}.*", re.DOTALL)


def values_of(records: Sequence[EpisodeRecord], name: str) -> Iterator[object]:
    """The plain values of a field; of dates with a time, the dates."""
    values = map(plain, field_column(records, name))
    if not _DATED.fullmatch(name):
        return values
    return (found[1] if isinstance(one, str) and (found := _CLOCK.fullmatch(one)) else one for one in values)


def _even(value: JsonValue) -> JsonValue:
    """With `1` for `1.0`, as equal numbers are one text."""
    if isinstance(value, dict):
        return {name: _even(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_even(one) for one in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def shown(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def field_names(records: Iterable[EpisodeRecord]) -> list[str]:
    """The fields that any of these records has."""
    return [*dict.fromkeys(name for both in sorted(held(records)) for some in both for name in some)]


def episodes_by(records: Sequence[EpisodeRecord], name: str) -> dict[str, frozenset[int]]:
    """The episodes with each value of a field, by the field's name and the value."""
    known = zip(map(attrgetter("episode"), records), values_of(records, name), strict=True)
    found = grouped([pair for pair in known if pair[1] is not None], itemgetter(1))
    return {f"{name} {shown(value)}": frozenset(episode for episode, _ in some) for value, some in found.items()}


def in_order(names: Collection[str]) -> list[str]:
    """The fields that can tell starts, the best evidence first."""
    return [*(name for name in HASH_FIELDS if name in names), *sorted(filter(_NUMBERED.fullmatch, names))]


def names_of(records: Sequence[EpisodeRecord]) -> set[str]:
    names = {*field_names(records)}
    columns = (field_column(records, name) for name in _holders(records))
    inside = {tuple(value) for column in columns for value in column if isinstance(value, dict)}
    return names | {name for keys in inside for name in in_order(keys)}


def _holders(records: Sequence[EpisodeRecord]) -> list[str]:
    """Fields with objects: a hash can lie in one, such as `info`."""
    names = dict.fromkeys(name for _, others in sorted(held(records)) for name in others)
    return [name for name in names if name not in in_order(names) and dict in map(type, field_column(records, name))]


def hashes(records: Sequence[EpisodeRecord], name: str) -> dict[int, object]:
    """By episode, what a field tells of its start."""
    column = field_column(records, name)
    for holder in _holders(records):
        inside = (value.get(name) if isinstance(value, dict) else None for value in field_column(records, holder))
        column = [other if own is None else own for own, other in zip(column, inside, strict=True)]
    values = zip(map(attrgetter("episode"), records), map(_reader(name), column), strict=True)
    return {episode: value for episode, value in values if value is not None}


def _reader(name: str) -> Callable[[JsonValue], object]:
    return _state if name in STATES else plain


def _state(value: JsonValue) -> object:
    """A state, or the number of one."""
    if isinstance(value, list | dict):
        return plain(value) if _FRACTION.search(json.dumps(value)) else None
    return value if isinstance(value, int | float) and not isinstance(value, bool) and value == int(value) else None


@dataclass(frozen=True)
class Told:
    """What a field tells of all starts, over all policies and environments together."""

    name: str
    by_combo: Mapping[Combo, Mapping[int, object]]
    same: Mapping[object, object]
    """by the text of a state, the one that it is equal to within rounding"""

    @classmethod
    def of(cls, name: str, combos: Mapping[Combo, Sequence[EpisodeRecord]]) -> Told:
        found = {combo: values for combo, records in combos.items() if (values := hashes(records, name))}
        return cls(name, found, rounded(one for values in found.values() for one in values.values()))

    @property
    def numbers(self) -> bool:
        """Whether it numbers starts, and is neither a state nor its hash. Then seeds may tell more of them."""
        every = chain(*(values.values() for values in self.by_combo.values()))
        return bool(_NUMBERED.fullmatch(self.name)) or (
            self.name in STATES and any(isinstance(one, int | float) for one in every)
        )

    def constant(self) -> set[Combo]:
        """The combos in which it never varies."""
        return {
            combo
            for combo, values in self.by_combo.items()
            if len(values) > 1 and len({self.same.get(one, one) for one in values.values()}) == 1
        }

    def tells_less(self, combo: Combo, seeds: Mapping[int, object]) -> bool:
        """Whether seeds differ where it is equal."""
        found: dict[object, object] = {}
        known = ((value, seeds[one]) for one, value in self.by_combo.get(combo, {}).items() if one in seeds)
        return any(found.setdefault(value, seed) != seed for value, seed in known)

    def rounding(self, combo: Combo) -> Iterator[Fact]:
        """How many episodes have a state that is equal to another one only to within rounding."""
        if count := sum(value in self.same for value in self.by_combo.get(combo, {}).values()):
            yield Fact(ROUNDED, field=self.name, episodes=count)


def told_of(combos: Mapping[Combo, Sequence[EpisodeRecord]]) -> list[Told]:
    """The best evidence first."""
    names = {name for records in combos.values() for name in names_of(records)}
    return [Told.of(name, combos) for name in in_order(names)]


def same_start(a: EpisodeRecord, b: EpisodeRecord) -> bool | None:
    """Whether the best hash that both records have is the same; None if they have none in common."""
    told = ((_reader(name)(a.field(name)), _reader(name)(b.field(name))) for name in HASH_FIELDS)
    both = next((found for found in told if None not in found), None)
    if both is None:
        return None
    return both[0] == both[1] or bool(rounded(both))


# -- states that are equal to within rounding -------------------------------------------------------------------------

RELATIVE = 1e-6
"""of the larger of two numbers. A float32 holds seven digits, files often keep six, and two machines add in another
order; a start that was meant to be another one differs by more"""
NOISE = 1e-9
"""a number below it is a zero that was computed"""
_EXACT = 2**53
"""an integer beyond it is no float"""


def rounded(states: Iterable[object]) -> dict[object, object]:
    """By the JSON text of a state, that of the first one which is equal to within rounding; only where they differ.
    What is no list and no object is left."""
    shapes: defaultdict[str, list[tuple[str, list[float]]]] = defaultdict(list)
    for text in sorted({one for one in states if isinstance(one, str) and one[:1] in ("[", "{")}):
        numbers: list[float] = []
        with suppress(ValueError):  # a hash that looks like one
            shapes[json.dumps(_shape(json.loads(text), numbers))].append((text, numbers))
    found: dict[object, object] = {}
    for alike in shapes.values():
        if len(alike) > 1 and alike[0][1]:
            found.update(_joined(alike))
    return found


def _shape(value: JsonValue, numbers: list[float]) -> JsonValue:
    """The value without its numbers, which are appended in the order of its keys."""
    if isinstance(value, dict):
        return {name: _shape(one, numbers) for name, one in sorted(value.items())}
    if isinstance(value, list):
        return [_shape(one, numbers) for one in value]
    if isinstance(value, bool) or not isinstance(value, int | float) or not -_EXACT < value < _EXACT:
        return [value]
    numbers.append(float(value))
    return None


def _joined(alike: list[tuple[str, list[float]]]) -> dict[str, str]:
    import numpy as np

    table = np.array([numbers for _, numbers in alike])
    rows = np.column_stack([_places(column) for column in table.T])
    first: dict[bytes, str] = {}
    own = {text: first.setdefault(row.tobytes(), text) for (text, _), row in zip(alike, rows, strict=True)}
    return {text: other for text, other in own.items() if text != other}


def _places(column: NDArray[np.float64]) -> NDArray[np.intp]:
    """For each number the place of the smallest one that it is equal to; two whole numbers never are."""
    import numpy as np

    values, place = np.unique(column, return_inverse=True)
    sizes, whole = np.abs(values), values == values.round()
    near = np.diff(values) <= np.maximum(RELATIVE * np.maximum(sizes[1:], sizes[:-1]), NOISE)
    start = np.arange(len(values))
    for at in np.flatnonzero(near) + 1:
        low = start[at - 1]
        limit = max(RELATIVE * max(sizes[at], sizes[low]), NOISE)
        if values[at] - values[low] <= limit and not (whole[at] and whole[low]):
            start[at] = low
    return start[place]
