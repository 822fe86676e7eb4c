"""The log of a training: `[train] step=4096 sps=980 avgReward(100)=0.250 avgLength(100)=60.0`.

A training has steps and no episodes. What it says of its average reward is a metric of a training, no success rate.
"""

from __future__ import annotations

import math
import re
from types import MappingProxyType
from typing import TYPE_CHECKING, BinaryIO

from comborun.reporter.adapters import Training, log_text, places
from comborun.reporter.adapters.findings import Findings, named

if TYPE_CHECKING:
    from comborun.reporter.adapters import Context, Reading

STEP = re.compile(r"\[train\]\s+step=(?P<step>\d{1,18})\b(?P<rest>.*)")

_METRIC = re.compile(r"(?P<key>[A-Za-z][\w./]*(?:\(\d+\))?)=(?P<value>[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|nan|inf))")
_TOTAL = re.compile(r"[Tt]otal steps:\s*(\d{1,18})\b")


def read(stream: BinaryIO, context: Context) -> Reading:
    context = named(context, *places.combo(context.path))
    findings = Findings(context)
    step, total, metrics = -1, None, dict[str, float]()
    for number, text in log_text.lines(stream):
        if announced := _TOTAL.search(text):
            total = int(announced[1])
        elif (told := STEP.search(text)) and int(told["step"]) >= step:
            step, metrics = int(told["step"]), _metrics(findings, number, told["rest"])
    if step >= 0:
        policy, environment = context.policy or places.UNNAMED, context.environment or places.UNNAMED
        shown = MappingProxyType(metrics)
        findings.trainings.append(Training(context.path, policy, environment, step, total, shown))
    return findings.reading()


def _metrics(findings: Findings, line: int, text: str) -> dict[str, float]:
    found = {match["key"]: float(match["value"]) for match in _METRIC.finditer(text)}
    for key in [key for key, value in found.items() if not math.isfinite(value)]:
        findings.defect(line, f"the field {key!r} is not a finite number: left out")
        del found[key]
    return found
