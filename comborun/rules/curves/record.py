"""The record of a training's curves: read back, and joined over the attempts of a session. Pure.

A later attempt goes on from a checkpoint: what it wrote of a step, and of later ones, counts in place of what an
earlier attempt wrote.
"""

from __future__ import annotations

from bisect import bisect_left

from comborun.rules.curves.metrics import EVALUATION, LENGTH, ROLES, TRAINING, UNITS
from comborun.rules.facts import Fact, json_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence

_FINITE = 1e300
_TEXT_MOST = 400
_POINTS_MOST, _LISTED_MOST = 1000, 200


def parse(text: str) -> dict[str, Any]:
    """The record, each value of the type that it should have; empty where it is torn, foreign or absent."""
    found = json_of(text)
    if not isinstance(found, dict):
        return {}
    return {
        "announced": _number(found.get("announced")),
        "curves": [one for one in map(_curve, _list(found.get("curves"))) if one],
        "more_curves": _count(found.get("more_curves")),
        "checkpoints": [one for one in map(_checkpoint, _list(found.get("checkpoints"))) if one],
        "checkpoints_found": _count(found.get("checkpoints_found")),
        "checkpoints_size": _count(found.get("checkpoints_size")),
        "facts": [one for one in map(Fact.of, _list(found.get("facts"))) if one],
    }


def _list(value: object) -> list[Any]:
    return value[:_LISTED_MOST] if isinstance(value, list) else []


def _number(value: object) -> int | float | None:
    plain = isinstance(value, (int, float)) and not isinstance(value, bool)
    return value if plain and abs(value) <= _FINITE else None  # type: ignore[return-value,arg-type]


def _count(value: object) -> int:
    number = _number(value)
    return int(number) if number is not None and number > 0 else 0


def _text(value: object) -> str:
    return value[:_TEXT_MOST] if isinstance(value, str) else ""


def _curve(value: object) -> dict[str, Any] | None:
    if not isinstance(value, dict) or value.get("role") not in ROLES or value.get("of") not in (TRAINING, EVALUATION):
        return None
    steps, values = value.get("steps"), value.get("values")
    if not isinstance(steps, list) or not isinstance(values, list) or len(steps) != len(values):
        return None
    points = [
        (step, told) for step, told in zip(steps, values) if _number(step) is not None and _number(told) is not None
    ]
    points = points[:_POINTS_MOST]
    if points != sorted(points, key=lambda one: one[0]):
        return None
    data: dict[str, Any] = {key: _text(value.get(key)) for key in ("name", "role", "of", "unit", "source")}
    counts = ("score", "points", "read", "not_numbers", "superseded", "ranks")
    data.update({key: _count(value.get(key)) for key in counts})
    return {**data, "steps": [step for step, _ in points], "values": [told for _, told in points]}


def _checkpoint(value: object) -> dict[str, Any] | None:
    if not isinstance(value, dict) or not _text(value.get("path")):
        return None
    unit = value.get("unit")
    return {
        "path": _text(value["path"]),
        "step": _number(value.get("step")),
        "unit": unit if unit in UNITS else "",
        "size": _count(value.get("size")),
    }


def best(curve: dict[str, Any]) -> tuple[float, float] | None:
    """Step and value of the highest point, the first of several; None of a length, where neither end is better."""
    if curve["role"] == LENGTH or not curve["steps"]:
        return None
    at = max(range(len(curve["values"])), key=lambda place: (curve["values"][place], -place))
    return curve["steps"][at], curve["values"][at]


def surest(curves: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of each role in training and in evaluations the first curve, which is the surest one."""
    chosen: dict[tuple[str, str], dict[str, Any]] = {}
    for one in curves:
        if one["steps"]:
            chosen.setdefault((one["of"], one["role"]), one)
    order = [(of, role) for of in (TRAINING, EVALUATION) for role in ROLES]
    return [chosen[key] for key in order if key in chosen]


def newest(found: dict[str, Any]) -> Fact | None:
    """The last step with the last values; None without any."""
    shown = surest(found.get("curves", ()))
    if not shown:
        return None
    first = shown[0]
    values = {f"{one['role']}": one["values"][-1] for one in reversed(shown) if one["unit"] == first["unit"]}
    last = max(one["steps"][-1] for one in shown if one["unit"] == first["unit"])
    of = found.get("announced") if first["unit"] == "steps" else None
    return Fact("trained_to", step=last, steps=of, unit=first["unit"], **values)


def joined(attempts: Sequence[tuple[int, dict[str, Any]]]) -> dict[str, Any]:
    """The record over all attempts, lowest first: each with its number."""
    curves: dict[tuple[str, str, str, str], dict[str, Any]] = {}
    checkpoints: list[dict[str, Any]] = []
    facts: list[Fact] = []
    total: dict[str, Any] = {"announced": None, "more_curves": 0, "checkpoints_found": 0, "checkpoints_size": 0}
    for number, found in attempts:
        restarted: tuple[float, str] | None = None
        for one in (curve for curve in found.get("curves", ()) if curve["steps"]):
            key = (one["of"], one["role"], one["name"], one["unit"])
            before = curves.get(key)
            if before and one["steps"][0] <= before["steps"][-1]:
                restarted = max(restarted or (0.0, ""), (one["steps"][0], one["unit"]))
            curves[key] = _after(before, one) if before else one
        if restarted:
            facts.append(Fact("trained_again", attempt=number, step=restarted[0], unit=restarted[1]))
        checkpoints += [{**one, "attempt": number} for one in found.get("checkpoints", ())]
        facts += found.get("facts", ())
        for name in ("checkpoints_found", "checkpoints_size"):
            total[name] += found.get(name, 0)
        total["more_curves"] = max(total["more_curves"], found.get("more_curves", 0))
        total["announced"] = found.get("announced") or total["announced"]
    ordered = sorted(curves.values(), key=lambda one: (one["of"], one["role"], -one["score"], -one["points"]))
    return {**total, "curves": ordered, "checkpoints": checkpoints, "facts": facts}


def _after(before: dict[str, Any], one: dict[str, Any]) -> dict[str, Any]:
    """One curve behind the part of another that is before its first step."""
    kept = bisect_left(before["steps"], one["steps"][0])
    sums = {key: before[key] + one[key] for key in ("points", "read", "not_numbers")}
    superseded = before["superseded"] + one["superseded"] + len(before["steps"]) - kept
    return {
        **one,
        **sums,
        "superseded": superseded,
        "steps": before["steps"][:kept] + one["steps"],
        "values": before["values"][:kept] + one["values"],
    }
