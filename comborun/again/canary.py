"""A canary: the first episodes of every combo of a run once more, one session at a time, as a run of its own. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from comborun.planner import digest_of, distinct, first_episodes
from comborun.text import shortened
from comborun.work import combo_of

if TYPE_CHECKING:
    from comborun.plan import Plan

OF = "canary_of"
"""in the manifest's provenance: the run that a canary repeats"""


def canary_plan(plan: Plan, run: str, episodes: int) -> Plan:
    """The same work as in `plan`, alone. Raises UserError where a command can't be told to do so few episodes."""
    combos = {combo_of(one): one for one in reversed(plan.sessions) if not one.flag}
    sessions = distinct(first_episodes(one, episodes, "canary") for one in reversed(combos.values()))
    name = f"{plan.grid}_canary"
    return replace(
        plan,
        grid=shortened(name, name),
        sessions=sessions,
        limits=replace(plan.limits, parallel=1, per_gpu=1, fail_fast=0, fail_fast_percent=0),
        after=None,
        notify=None,
        replaces=(),
        stop_early=None,
        digest=digest_of(OF, run, [session.digest for session in sessions]),
    )
