"""A log that ends in a printed tuple: `results:  ('env', [True, False], {...})`, then `success rate:  0.5`.

The episodes are listed in the order in which they ended. The list may hold more than were asked for, since several
copies of the environment can end in one step.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, BinaryIO

from comborun.reporter.adapters import RejectKind, first_k, literals, log_text, places
from comborun.reporter.adapters.findings import Findings, named
from comborun.reporter.adapters.rates import agrees

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from comborun.reporter.adapters import Context, Reading

RESULTS = re.compile(r"^\s*results:\s*(?P<tuple>\(.*)$")
RATE = re.compile(r"^\s*success rate:\s+(?P<rate>[\d.]+|nan)")

TUPLE_LIMIT = 1 << 20
"""characters"""

_ASKED = re.compile(r"collecting (?P<episodes>\d{1,9}) episodes for (?P<env>.+?) with (?P<copies>\d{1,9}) vec envs")
_TRIES = 100
"""at finding the end of a tuple that spans lines"""


@dataclass
class _Printed:
    """What the log says of one environment."""

    line: int
    copies: int
    value: Any = None
    """None while the tuple is not whole"""
    rate: str | None = None
    _lines: list[str] = field(default_factory=list)
    _size: int = 0
    _tries: int = 0

    def extend(self, text: str) -> None:
        """A further line of the tuple, if it needs one."""
        self._size += len(text)
        if self.value is not None or self._size > TUPLE_LIMIT or self._tries > _TRIES:
            return
        self._lines.append(text)
        if text.rstrip().endswith(")"):
            self._tries += 1
            with suppress(literals.LiteralError):
                self.value = literals.parse("\n".join(self._lines))


def read(stream: BinaryIO, context: Context) -> Reading:
    findings = Findings(context)
    for printed in _tuples(stream):
        _take(findings, printed)
    return findings.reading()


def _tuples(stream: BinaryIO) -> Iterator[_Printed]:
    printed: _Printed | None = None
    copies = 1
    for number, text in log_text.lines(stream):
        if begun := RESULTS.match(text):
            if printed:
                yield printed
            printed = _Printed(number, copies)
            printed.extend(begun["tuple"])
        elif asked := _ASKED.search(text):
            copies = int(asked["copies"])
        elif printed and (rate := RATE.match(text)):
            printed.rate = rate["rate"]
            yield printed
            printed = None
        elif printed:
            printed.extend(text)
    if printed:
        yield printed


def _take(findings: Findings, printed: _Printed) -> None:
    match printed.value:
        case None:
            findings.reject(printed.line, RejectKind.TORN, "the printed results are cut off")
        case [str(environment), [*successes], *rest]:
            found = _in_context(findings, environment)
            _take_episodes(found, printed, successes, _per_episode(found, printed.line, rest, len(successes)))
        case _:
            findings.reject(printed.line, RejectKind.NOT_A_RECORD, "no environment with a list of successes")


def _in_context(findings: Findings, environment: str) -> Findings:
    """The same findings under the combo that the tuple names."""
    policy = places.policy(findings.context.path, {environment})
    return replace(findings, context=named(findings.context, policy, environment))


def _take_episodes(
    findings: Findings, printed: _Printed, successes: list[Any], columns: Mapping[str, list[Any]]
) -> None:
    if not successes:
        findings.reject(printed.line, RejectKind.NOT_A_RECORD, "results of no episodes")
        return
    for index, success in enumerate(successes):
        fields = {name: values[index] for name, values in columns.items()}
        findings.take_episode(
            printed.line, findings.context.first + index, {**fields, findings.context.rules.success: success}
        )
    first_k.warn(findings, printed.copies, len(successes))
    good = sum(success in (True, 1) for success in successes if not isinstance(success, list | dict | str))
    if printed.rate is not None and not agrees(printed.rate, good, len(successes)):
        findings.defect(printed.line, f"the printed rate of {printed.rate} is not {good} of {len(successes)} as listed")


def _per_episode(findings: Findings, line: int, rest: list[Any], count: int) -> dict[str, list[Any]]:
    """The columns of the dictionary that hold one value per episode."""
    told = rest[0] if rest and isinstance(rest[0], dict) else {}
    columns = {name: values for name, values in told.items() if isinstance(values, list) and len(values) == count}
    for name in told.keys() - columns.keys():
        findings.defect(line, f"the field {name!r} does not hold one value per episode: left out")
    return columns
