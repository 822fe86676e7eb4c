"""`evidence`, `failures`, `retry`, `limits` and `notify` in a grid: what they say, and what looks like a mistake."""

from __future__ import annotations

import json
from dataclasses import replace

import gridtext
import pytest

from comborun.generate.bundle import policy, session_manifest
from comborun.model.judging import EvidenceRules, RetryRule
from comborun.model.plan import Plan, Session
from comborun.rules.endings.failures import Failure

HEAD = "policies: [a,b]\nenvironments: [x]\nepisodes: 10\ncommand: r {policy} {first_episode} {episodes} {output_dir}\n"
SILENT = "{when: {policy: a}, progress: {silent: true}, limits: {stall_after: 0}}"


def plan(text: str) -> Plan:
    return gridtext.plan(HEAD + text)


def mistakes(text: str) -> str:
    return gridtext.mistakes(HEAD + text)


def both(text: str) -> tuple[Session, Session]:
    a, b = sorted(plan(text).sessions, key=lambda session: session.policy)
    return a, b


def test_evidence_is_merged_key_by_key() -> None:
    a, b = both(
        "evidence: {line: done, files: [x.json, y/*.mp4], grace: 90 s}\n"
        "overrides: [{when: {policy: b}, evidence: {records: false, grace: 0}}]\n"
    )
    assert a.evidence == EvidenceRules(records=True, line="done", files=("x.json", "y/*.mp4"))
    assert b.evidence == replace(a.evidence, records=False)
    assert (a.watch.hang_s, b.watch.hang_s) == (90, 0)


def test_a_memory_limit_is_that_of_the_request_and_needs_one() -> None:
    a, _ = both("resources: {memory: 2 GiB}\nlimits: {memory: enforce}\n")
    assert json.loads(session_manifest(a))["memory_mib"] == 2048
    assert "asks for no memory" in mistakes("limits: {memory: enforce}\n")


def test_a_budget_of_retries_keeps_the_wait_of_its_class_unless_it_names_one() -> None:
    rules = {
        rule.failure: rule for rule in plan("retry: {gpu_memory: 5, error: {times: 2}, lost: {wait: 1 min}}\n").retry
    }
    assert rules[Failure.GPU_MEMORY] == RetryRule(Failure.GPU_MEMORY, 5, 60.0)
    assert rules[Failure.ERROR] == RetryRule(Failure.ERROR, 2, 10.0)
    assert rules[Failure.LOST] == RetryRule(Failure.LOST, 2, 60.0)
    assert rules[Failure.KILLED] == RetryRule(Failure.KILLED, 1, 10.0)


def test_the_dispatcher_is_told_of_every_budget_in_numbers() -> None:
    text = "retry: {lost: {times: 1, wait: 1500 ms}, crashed: 0}\nnotify: {command: t, on: [host, failed]}\n"
    lines = json.loads(policy(plan(text)))
    assert (lines["retry_lost"], lines["wait_lost_ms"]) == (1, 1500)
    assert lines["retry_crashed"] == 0
    assert "wait_crashed_ms" not in lines
    assert (lines["notify_every_ms"], lines["notify_kinds"]) == (600000, "host,failed")
    assert {f"retry_{failure}" for failure in Failure} == {key for key in lines if key.startswith("retry_")}


def test_a_line_that_is_evidence_may_count_the_episodes() -> None:
    told = plan("evidence: {line: 'so far: {episodes}$'}\n").sessions[0]
    assert told.evidence.line == "so far: {episodes}$"
    assert json.loads(session_manifest(told))["judging"]["evidence"]["line"] == "so far: {episodes}$"
    assert "{episode} is not a number of repeats" in mistakes("evidence: {line: 'so far: {episode}$'}\n")
    uncounted = HEAD.replace("episodes: 10\n", "") + "evidence: {line: '{episodes} done'}\n"
    assert "uses {episodes}, but" in gridtext.mistakes(uncounted)


STEPS = "results: {files: steps.txt, format: train-step}\n"


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        (STEPS, True),
        (f"{STEPS}evidence: {{files: steps.txt}}\n", False),
        (f"{STEPS}evidence: {{records: false}}\n", False),
        ("evidence: {records: false}\n", False),
    ],
)
def test_results_that_are_no_episodes_have_to_be_there_unless_the_grid_says_which_files(text: str, asked: bool) -> None:
    assert json.loads(session_manifest(plan(text).sessions[0]))["judging"]["evidence"]["any_files"] == asked


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("limits: {stall_after: 1 h}\nprogress: {silent: true}\n", "5:10", "but `progress: {silent: true}` says"),
        ("evidence: {records: false}\n", "5:12", "only the exit code decides"),
        ("retry: {error: 1}\n", "5:9", "biases the success rate"),
        (f"limits: {{stall_after: 1 h}}\noverrides: [{SILENT}]\n", "", ""),
        ("evidence: {records: false, line: done}\n", "", ""),
        ("overrides: [{when: {policy: a}, results: none}, {when: {policy: b}, evidence: {records: true}}]\n", "", ""),
    ],
)
def test_what_looks_like_a_mistake_is_said_and_what_is_meant_is_not(text: str, place: str, words: str) -> None:
    told = gridtext.warnings(HEAD + text)
    assert told.count("grid.yaml:") == bool(words)
    assert not words or told.startswith(f"grid.yaml:{place}: ")
    assert words in told


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("notify: {on: failed}\n", "`notify` without a `command`"),
        ("notify: {command: t, on: []}\n", "`notify.on` is empty"),
        ("limits: {fail_fast: 0}\n", "would stop every start"),
        ("limits: {fail_fast: 101 %}\n", "too much"),
        ("notify: tell {run}\n", "{run} is not filled here"),
        ("notify: {command: t, every: 9 d}\n", "`notify.every`: no notice is held back longer than a day"),
    ],
)
def test_what_can_not_work_is_refused(text: str, words: str) -> None:
    assert words in mistakes(text)
