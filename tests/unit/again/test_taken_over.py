"""What a run takes over from its grid without a question is told, and nothing else is."""

from __future__ import annotations

from dataclasses import replace

from test_amend import OTHER, amended, plan, session

from comborun.again.notes import taken_over
from comborun.judging import WatchRules
from comborun.plan import Limits
from comborun.resources import Reserve
from comborun.rules.placement import Request


def test_numbers_are_told_with_both_values() -> None:
    now = plan(session(), limits=Limits(1, 1, 2.5, 3), gpus=(0, 1), poll=5.0)
    assert taken_over(plan(session()), now) == (
        "limits.stagger: 0 before, 2.5 now",
        "limits.attempts: 2 before, 3 now",
        "use_gpus: none before, 0, 1 now",
        "poll: 60 before, 5 now",
    )


def test_sessions_on_a_gpu_that_only_follow_their_number_are_not_told() -> None:
    before, now = plan(session()), plan(session(), session("q"))
    one, two = (replace(before.limits, per_gpu=count) for count in (1, 2))
    assert taken_over(replace(before, limits=one), replace(now, limits=two)) == ()
    assert taken_over(replace(now, limits=one), replace(now, limits=two)) == ("limits.per_gpu: 1 before, 2 now",)


def test_what_sessions_ask_for_and_what_is_kept_free_are_told_with_both_values() -> None:
    asked = Request(gpu_memory=9216, cpus=2, tokens=("ray",))
    before = replace(plan(session(request=asked), session("q")), reserve=Reserve(gpu_memory=1024))
    more = replace(asked, gpu_memory=11264, cpus=0, per_gpu=3, group="x", tokens=())
    now = replace(plan(session(request=more), session("q", request=Request(gpu_memory=512))), reserve=Reserve(cpus=1))
    assert taken_over(before, now) == (
        "reserve.gpu_memory: 1024 MiB before, 0 MiB now",
        "reserve.cpus: 0 before, 1 now",
        "resources.gpu_memory: not said to 9216 MiB before, 512 MiB to 11264 MiB now",
        "resources.cpus: not said to 2 before, not said now",
        "resources.per_gpu: not said before, not said to 3 now",
        "resources.exclusive has changed",
    )


def test_sessions_that_came_or_went_are_not_told_here() -> None:
    before = plan(session())
    now = plan(session(command=OTHER, watch=WatchRules(stall_s=60)), session("q"))
    assert taken_over(before, amended(before, now, "rerun").plan) == ()
