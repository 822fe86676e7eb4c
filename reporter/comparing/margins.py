"""Policies that are not worse than others by more than a margin, and conditions that a program checks. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from comborun.errors import UserError
from comborun.reporter.comparing.comparison import (
    ALPHA,
    Comparison,
    Overall,
    Tested,
    compared,
)
from comborun.reporter.comparing.limits import facts_of
from comborun.reporter.comparing.pairing import meet
from comborun.reporter.comparing.sides import Meeting, Side
from comborun.reporter.comparing.units import p_of_runs, rates_of_runs, run_rates_of
from comborun.reporter.evidence.runs import above
from comborun.reporter.json_types import Facts, Rounded
from comborun.reporter.statistics.difference import holm
from comborun.reporter.statistics.pooled import Stratum, not_worse_p
from comborun.reporter.statistics.proportion import at_least_p
from comborun.text import listed


@dataclass(frozen=True)
class NotWorse(Tested):
    """Whether policy `a` is not worse than policy `b` by more than a margin. `decided`: it is shown."""

    margin: Rounded
    environments: tuple[str, ...]
    """several mean: over all of them, each with the same weight"""
    unknown: tuple[int, int]


def not_worse(meetings: Sequence[Meeting], margin: float) -> tuple[NotWorse, NotWorse]:
    """Of the same two policies: a against b, and b against a."""
    found = compared(meetings)
    return _not_worse(meetings, found, margin, 1), _not_worse(meetings, found, margin, -1)


def _not_worse(meetings: Sequence[Meeting], found: Comparison | Overall, margin: float, sign: int) -> NotWorse:
    seen = [one.seen if sign > 0 else one.seen.swapped for one in meetings]
    against = [one.against(1) if sign > 0 else one.against(-1).swapped for one in meetings]
    p = max(not_worse_p(seen, margin), p_of_runs(meetings, sign * margin, sign))
    rates, told = run_rates_of(meetings)
    if rates and not told:  # seeds that may be starts: each counts once
        a, b = ((sum(one), len(one)) for one in rates[::sign])
        p = max(p, not_worse_p([Stratum(a, b)], margin))
    low, high = found.interval
    return NotWorse(
        a=found.a if sign > 0 else found.b,
        b=found.b if sign > 0 else found.a,
        difference=sign * found.difference,
        interval=(low, high) if sign > 0 else (-high, -low),
        p=p,
        worst_p=max(p, not_worse_p(against, margin)),
        margin=margin,
        environments=tuple(one.environment for one in meetings),
        unknown=found.unknown if sign > 0 else found.unknown[::-1],
        facts=found.facts,
    )


# -- conditions -------------------------------------------------------------------------------------------------------

Kind = Literal["better", "not worse", "at least"]
SYNTAX = (
    "`A better than B`, `A not worse than B by 5 points` or `A at least 80 %`, each perhaps with ` in ENVIRONMENT` at"
    " its end"
)


@dataclass(frozen=True)
class Gate:
    """A condition, as it was given."""

    text: str
    kind: Kind
    a: str
    b: str = ""
    share: float = 0.0
    """the margin, or the least rate"""
    environment: str = ""
    """empty: over all of them"""


@dataclass(frozen=True)
class GateResult:
    """A condition and whether it is shown."""

    condition: str
    holds: bool
    """whether it is shown, with 5 % of error for all conditions together"""
    value: Rounded | None
    """the difference of both rates, or the rate; None if nothing could be tested"""
    p: Rounded | None
    """two-sided, adjusted by Holm over all conditions; if every episode without a verdict counts against it"""
    why: str = ""
    """why it could not be tested"""
    against: str = ""
    """the policy that it is compared with; empty for a rate"""
    facts: Facts = ()
    """what limits it, as of the comparison that it rests on"""


def parse_gate(text: str, policies: Sequence[str], environments: Sequence[str]) -> Gate:
    """Raises UserError for other words or names."""
    name, place = ("|".join(map(re.escape, sorted(names, key=len, reverse=True))) for names in (policies, environments))
    where = rf"(?:\s+in\s+(?P<environment>{place}))?\s*"
    share = r"(?P<share>\d+(?:\.\d+)?)\s*(?:points?|%|per cent)?"
    forms: dict[Kind, str] = {
        "better": rf"\s*(?P<a>{name})\s+better\s+than\s+(?P<b>{name}){where}",
        "not worse": rf"\s*(?P<a>{name})\s+not\s+worse\s+than\s+(?P<b>{name})\s+by\s+{share}{where}",
        "at least": rf"\s*(?P<a>{name})\s+at\s+least\s+{share}{where}",
    }
    for kind, form in forms.items():
        if found := re.fullmatch(form, text):
            parts = {key: value for key, value in found.groupdict().items() if value}
            amount = float(parts.pop("share", 0)) / 100
            if parts.get("b") == parts["a"] or not 0 <= amount < 1:
                break
            return Gate(text, kind, share=amount, **parts)
    known = f"policies: {listed(policies)}; environments: {listed(environments)}"
    raise UserError(f"--gate {text!r}: not understood", f"{SYNTAX}; {known}")


def check(gates: Sequence[Gate], environments: Mapping[str, Sequence[Side]], open_: str = "") -> tuple[GateResult, ...]:
    """`open_`: why nothing can be tested, such as that the run goes on."""
    tested = [(gate, *_tested(gate, environments)) for gate in gates]
    adjusted = holm([p if p is not None and not open_ else 1.0 for _, _, p, *_ in tested])
    return tuple(
        GateResult(
            gate.text,
            holds=not (open_ or why) and p is not None and corrected <= ALPHA,
            value=value,
            p=None if open_ or p is None else corrected,
            why=open_ or why,
            against=gate.b,
            facts=facts,
        )
        for (gate, value, p, why, facts), corrected in zip(tested, adjusted, strict=True)
    )


_Found = tuple[float | None, float | None, str, Facts]
"""the value, p, why there is none, and what limits them"""


def _tested(gate: Gate, environments: Mapping[str, Sequence[Side]]) -> _Found:
    cells = {
        name: {side.policy: side for side in sides if side.counts[1]}
        for name, sides in environments.items()
        if gate.environment in ("", name)
    }
    if gate.kind == "at least":
        return _at_least(gate, cells)
    both = {name: found for name, found in cells.items() if {gate.a, gate.b} <= found.keys()}
    if lacking := [name for name, found in cells.items() if name not in both and {gate.a, gate.b} & found.keys()]:
        return None, None, f"no completed episodes of both in {listed(lacking)}", ()
    if not both:
        return None, None, "no completed episodes of both", ()
    meetings = [meet(name, found[gate.a], found[gate.b]) for name, found in both.items()]
    if gate.kind == "not worse":
        found = not_worse(meetings, gate.share)[0]
        return found.difference, found.worst_p, "", found.facts
    better = compared(meetings)
    return better.difference, better.worst_p if better.difference > 0 else 1.0, "", better.facts


def _at_least(gate: Gate, cells: Mapping[str, Mapping[str, Side]]) -> _Found:
    own = [found[gate.a] for found in cells.values() if gate.a in found]
    sides = [one.filled(success=False) for one in own]
    if len(sides) < len(cells) or not sides:
        return None, None, "no completed episodes in some environment" if sides else "no completed episodes", ()
    rates = [side.by_start for side in sides]
    of_runs, told = rates_of_runs(sides)
    p = max(at_least_p(rates, gate.share), above(of_runs, gate.share, told=told))
    if not told:  # seeds that may be starts: each counts once
        p = max(p, at_least_p([(sum(of_runs), len(of_runs))], gate.share))
    return sum(k / n for k, n in rates) / len(rates), p, "", facts_of(own)
