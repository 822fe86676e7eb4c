"""What is said of a host whose nvidia-smi is not well, or which is this machine; and of a cut that stays."""

from __future__ import annotations

import json
from dataclasses import replace

import gridtext
import pytest
from monitor_stage import StagedHost

from comborun.amendment.changes import amend, compare
from comborun.amendment.notes import cut_kept
from comborun.errors import HostError, UserError
from comborun.model.plan import Plan
from comborun.model.resources import HostFacts
from comborun.remote.host import check_host, host_facts
from comborun.rules.facts import Fact
from comborun.rules.findings import Found
from comborun.rules.names import MULTIPLEXER_NAMES
from comborun.words import say

FACTS = {
    "python": "/usr/bin/python3",
    "hostname": "box",
    "bash": "5.2",
    **dict.fromkeys(MULTIPLEXER_NAMES, ""),
    "cpus": 4,
    "memory_kib": 64 << 20,
    "available_kib": None,
    "missing": {},
    "lacking": [],
}
GRID = """
policies: [flat, rough]
environments: [stairs]
command: python evaluate.py {policy} {environment} {first_episode} {episodes}
"""


def plan(text: str, host: HostFacts = gridtext.HOST, episodes: int = 12) -> Plan:
    return gridtext.plan(f"{GRID}episodes: {episodes}\n{text}", host)


@pytest.mark.parametrize(
    ("gpus", "trouble"),
    [
        ({"code": 124}, Fact(Found.DRIVER_HANGS)),
        ({"code": 9, "said": "NVIDIA-SMI has failed."}, Fact(Found.DRIVER_FAILS, exit=9, said="NVIDIA-SMI has failed")),
    ],
)
def test_gpus_that_nvidia_smi_does_not_tell_are_not_said_to_be_absent(gpus: dict[str, object], trouble: Fact) -> None:
    facts = host_facts(StagedHost([json.dumps({**FACTS, "gpus": gpus}).encode()]))
    assert facts.gpu_trouble == trouble
    with pytest.raises(UserError) as refusal:
        plan("resources: {gpus: 1}\nuse_gpus: [0]", facts)
    assert say(trouble) in refusal.value.message
    assert "resources.gpus" not in refusal.value.hint
    plan("", facts)


def test_programs_that_are_absent_or_not_gnus_are_named() -> None:
    lacks = {"setsid": "absent", "head": "busybox"}
    facts = host_facts(StagedHost([json.dumps({**FACTS, "tmux": "tmux 3.4", "gpus": {}, "missing": lacks}).encode()]))
    with pytest.raises(HostError) as refusal:
        check_host(facts)
    assert refusal.value.message.endswith("setsid, GNU's head (this one is busybox's)")


def test_a_cut_that_a_run_keeps_is_told() -> None:
    two, four = (plan(f"shards: {shards}\n") for shards in (2, 4))
    assert cut_kept(two, two) == ()
    (told,) = cut_kept(two, four)
    assert told.startswith("flat in stairs, rough in stairs: ")
    assert "--new" in told
    longer = replace(four, sessions=tuple(replace(one, count=one.count + 1) for one in four.sessions))
    assert cut_kept(two, longer) == ()


def test_a_session_for_episodes_that_were_added_is_no_other_cut() -> None:
    six, eight = (plan("", episodes=count) for count in (6, 8))
    run = amend(compare(six, eight)).plan
    assert len(run.sessions) == 2 * len(eight.sessions)
    assert cut_kept(run, eight) == ()
    (told,) = cut_kept(run, plan("shards: 4\n", episodes=8))
    assert "flat in stairs" in told
