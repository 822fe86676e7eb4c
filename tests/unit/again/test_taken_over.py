"""What a run takes over from its grid without a question is told, and nothing else is."""

from __future__ import annotations

from dataclasses import replace

from test_amend import OTHER, amended, plan, session

from comborun.again.notes import taken_over
from comborun.judging import WatchRules
from comborun.plan import Limits
from comborun.rules.placement import Request


def test_the_keys_that_have_changed_are_named() -> None:
    asked = Request(gpu_memory=9216, cpus=2)
    before = plan(session(request=asked))
    now = plan(session(request=replace(asked, cpus=0)), limits=Limits(1, 1, 2.5, 2), gpus=(0, 1))
    (told,) = taken_over(before, now)
    assert told.endswith(" limits.stagger, use_gpus, resources")
    assert taken_over(before, before) == ()


def test_sessions_that_came_or_went_are_not_told_here() -> None:
    before = plan(session())
    now = plan(session(command=OTHER, watch=WatchRules(stall_s=60)), session("q"))
    assert taken_over(before, amended(before, now, "rerun").plan) == ()
