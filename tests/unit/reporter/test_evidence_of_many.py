"""What limits single combos is found among those of the same environment alone, however many others there are."""

from __future__ import annotations

from comborun.reporter.comparing.limits import evidence
from comborun.reporter.comparing.sides import Arm, Results


class Name(str):
    """A name that counts how often it is compared."""

    __slots__ = ()
    compared = 0

    def __eq__(self, other: object) -> bool:
        Name.compared += 1
        return str.__eq__(self, other)

    def __hash__(self) -> int:
        return str.__hash__(self)


def results(environments: int) -> Results:
    done = frozenset(range(4))
    varies = {"policy_checkpoint": frozenset({"1", "2"}), "scene": frozenset({"x", "y"})}
    sides = {}
    for number in range(environments):
        name = Name(f"e{number}")
        for policy in ("a", "b"):
            context = {**varies, "scene": frozenset({"x"})} if policy == "b" else varies
            sides[policy, name] = Arm(policy, done, done, context=context if number == 3 else {})
    return Results({}, {}, sides, {})


def test_the_findings_are_those_of_the_environment_and_the_work_grows_with_the_combos() -> None:
    Name.compared = 0
    found = [*evidence(results(200))]
    assert {one.where for one in found} == {"a × e3", "b × e3"}
    assert Name.compared < 10 * 400, "each combo is not held against all others"
