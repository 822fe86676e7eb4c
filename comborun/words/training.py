"""The curves of a training (`rules/curves`), in words."""

from __future__ import annotations

from comborun.rules.curves.metrics import LENGTH, REWARD, STEPS, SUCCESS, UNITS
from comborun.rules.facts import Fact
from comborun.rules.vocabulary import several

TYPE_CHECKING = False
if TYPE_CHECKING:
    from comborun.words import Words


def value(role: str, number: float) -> str:
    """A value of a curve: success in per cent if it is a share, four significant digits of others."""
    if role == SUCCESS and 0 <= number <= 1:
        return f"{100 * number:.1f} %"
    return f"{number:.4g}" if abs(number) < 1e4 else f"{number:,.0f}" if abs(number) < 1e15 else f"{number:.4g}"


def at(number: float, unit: str) -> str:
    """A place on the axis: `step 4,096`."""
    return f"{unit[:-1] if unit in UNITS else 'step'} {in_digits(number)}"


def in_digits(number: float) -> str:
    return f"{number:,.0f}" if number == int(number) else f"{number:,g}"


def _trained_to(fact: Fact) -> str:
    unit = fact.text("unit") or STEPS
    of = fact.number("steps")
    place = at(fact.number("step") or 0, unit) + (f" of {of:,.0f}" if of else "")
    known = ((role, fact.number(role)) for role in (REWARD, SUCCESS, LENGTH))
    shown = [f"{role} {value(role, told)}" for role, told in known if told is not None]
    late = fact.number("late")
    before = f" before; its files were not read again within {late:g} s" if late else ""
    return (f"{place}: {', '.join(shown)}" if shown else place) + before


def _others(count: int) -> str:
    return f" and {several(count, 'other file')}" if count else ""


WORDS: Words = {
    "trained_to": _trained_to,
    "curves_not_in_time": "its curves were not read within {late:g} s",
    "trained_again": lambda fact: (
        f"attempt {fact.count('attempt')} went on from {at(fact.number('step') or 0, fact.text('unit'))}: from"
        " there its values count, and not those of earlier attempts"
    ),
    "read_in_part": "{path} has {size:amount}: only its beginning and its end are read, {most:amount} together",
    "curves_not_read": "{path}: its curves can't be read: {error}",
    "arrays_not_read": lambda fact: (
        f"{fact.text('path')}{_others(fact.count('files') - 1)}: no curves are read from it, since it is not as"
        " Stable-Baselines3 writes evaluations.npz, with `timesteps` and `results`"
    ),
    "folder_in_part": "its output folder holds more than {most} files: curves and checkpoints are of the first ones",
    "files_not_read": "{path} and later files are not read: only the first {most} files, or so many bytes, are",
    "steps_jump": "{name} in {path}: its steps go back too often, or stand still, so it has no curve",
    "curves_beyond": (
        "{path} has more curves than the {most} that are read of one source: {metrics} or more metrics are left out"
    ),
    "values_superseded": (
        "{superseded:value} of its curves were written again by a later start; the newest value of a step counts"
    ),
    "values_no_numbers": "{name}: {not_numbers:value} left out, since not finite",
}
