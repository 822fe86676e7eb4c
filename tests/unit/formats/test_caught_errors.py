"""An error that a program catches in an episode, and then counts as a failure of the policy."""

from __future__ import annotations

import json

import pytest

from comborun.rules.results import tally
from comborun.rules.results.caught import broken_off
from comborun.rules.results.fields import Identity, ResultRules
from comborun.rules.results.formats import reader
from comborun.rules.results.tally import Rows

TRACEBACK = 'Traceback (most recent call last):\n  File "eval.py", line 3, in step\n    send()\n'


def counted(*between: str, rules: ResultRules | None = None, kind: str = "log-lines", verdict: str = "False"):
    """Of two episodes: one with these lines in it, and a good one."""
    lines = [
        "Task: open it",
        "Starting episode 1...",
        *between,
        f"Success: {verdict}",
        "# episodes completed so far: 1",
    ]
    lines += ["Starting episode 2...", "Success: True", "# episodes completed so far: 2"]
    if kind == "log-pattern":
        lines = [*between, f"episode 0: {'success' if verdict == 'True' else 'fail'}", "episode 1: success"]
    identity = Identity("vla", "goal", rules or ResultRules())
    rows = Rows(reader(kind, identity, "log"))
    rows.feed(("\n".join(lines) + "\n").encode())
    rows.finish()
    files = tally.Files()
    files.rows = [("log", rows)]
    return tally.tally(files, identity, (0, 2), over=True)


@pytest.mark.parametrize(
    "between",
    [
        "Episode error: CUDA error: out of memory",
        "Episode error: [Errno 104] Connection reset by peer",
        "ERROR:root:Caught exception: received 1011 (internal error)",
        f"{TRACEBACK}RuntimeError: CUDA out of memory",
        "Rollout crashed: no answer of the policy server",
        "[ERROR] exception during rollout, ConnectionClosedError(1006)",
        "Exception in episode, no answer",
        "2026-11-28 19:00:00 | ERROR | eval:run:12 - requests.exceptions.ReadTimeout: read timed out\nHTTPError: 503",
        "Trial exception: list index out of range",
        "env.step() failed: TimeoutError('no answer within 30 s')",
        "policy error: server disconnected",
        "Error in episode: websocket closed",
        "Episode 2 raised AssertionError, skipping",
    ],
)
@pytest.mark.parametrize("kind", ["log-lines", "log-pattern"])
def test_an_error_between_start_and_verdict_makes_the_episode_errored_whatever_its_words(between, kind):
    rules = ResultRules(pattern=r"episode (?P<episode>\d+): (?P<verdict>\w+)") if kind == "log-pattern" else None
    for verdict in ("False", "True"):
        counts = counted(between, kind=kind, rules=rules, verdict=verdict)
        assert (counts.records, counts.successes, counts.failures, counts.errored) == (2, 1, 0, 1)
        assert [(fact.code, fact.count("episodes")) for fact in counts.facts] == [("ended_in_exceptions", 1)]


@pytest.mark.parametrize(
    "between",
    [
        "WARNING: caught TimeoutError('server'), marking as failure",
        "urllib3.exceptions.MaxRetryError: HTTPConnectionPool(host='localhost', port=8000)",
        "aborting episode due to NaN in qpos",
        "Failed to step the environment",
    ],
)
def test_a_line_that_may_have_ended_the_episode_is_told(between):
    counts = counted(between)
    assert (counts.successes, counts.failures) == (1, 1)
    assert [(fact.code, fact.text("line")) for fact in counts.facts] == [("verdicts_after_errors", between)]


@pytest.mark.parametrize(
    "between",
    [
        "WARNING:root:IK error: no solution within 20 steps",
        "[urllib3.connectionpool][WARNING] - Retrying: Connection refused",
        "wandb: ERROR Error while calling W&B API: Connection reset by peer",
        "position error: 0.021 m",
        "TrackingError: 0.02",
        "mean error = 1.5e-3",
        "failed to grasp the mug",
        "errors: 0",
        "no error",
        "position error: 0.003, 0 errors so far",
        "policy action error: 0.012 m, max 0.2 m",
        "L2 error (mean): 1.5e-3 | errors=0 | step 12",
        "tracking_error=0.02 crashes=0.0 reward=3",
    ],
)
def test_warnings_metrics_and_failures_of_the_policy_are_no_errors(between):
    counts = counted(between)
    assert (counts.successes, counts.failures, counts.facts) == (1, 1, ())


@pytest.mark.parametrize(
    "between",
    [
        "the server refused the request",
        "CUDA out of memory, once more with half the batch",
        "[ERROR] gripper",
        "position error: 0.003, 1 error so far",
        f"Exception in thread Thread-3 (send):\n{TRACEBACK}ConnectionResetError: [Errno 104] reset",
    ],
)
def test_a_line_that_looks_like_an_error_makes_the_verdict_suspect_and_is_told(between):
    counts = counted(between)
    assert (counts.successes, counts.failures) == (1, 1)
    assert [fact.code for fact in counts.facts] == ["verdicts_after_errors"]
    assert counts.facts[0].text("line") in between
    markers = ["refused", "once more", "gripper", "Errno", "1 error"]
    assert counted(between, rules=ResultRules(errors=markers)).errored == 1


def test_an_error_before_the_first_episode_is_none_of_it():
    identity = Identity("vla", "goal", ResultRules())
    rows = Rows(reader("log-lines", identity, "log"))
    rows.feed(b"ImportError: no flash_attn, using eager\nStarting episode 1...\nSuccess: False\n")
    rows.feed(b"# episodes completed so far: 1\n")
    rows.finish()
    assert (rows.episodes or rows.numbered) == {0: False}
    assert not rows.refused


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("error", "websocket closed 1011 keepalive ping timeout"),
        ("info.error", "the simulator is gone"),
        ("exception", "RuntimeError"),
        ("status", "Crashed"),
        ("status", "sim_crash"),
        ("termination", "exception: MujocoException: NaN in qacc"),
        ("notes", "grpc.RpcError: UNAVAILABLE"),
    ],
)
def test_a_failure_whose_row_tells_of_an_error_is_remarked_with_its_text(field: str, text: str) -> None:
    assert broken_off(field, text, failed=True)
    rows = Rows(reader("jsonl-rows", Identity("p", "e"), "r.jsonl"))
    rows.feed("".join(json.dumps({"episode": at, "success": bool(at), field: text}) + "\n" for at in (0, 1)).encode())
    assert [(one.count("episodes"), one.text("field"), one.text("text")) for one in rows.told()] == [(1, field, text)]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("error", value) for value in ("", "none", "null", "0.03", "timeout", "collision", 0.5, None, ["x"])),
        *(("status", value) for value in ("done", "failed", "timeout", "no error", "tracking_error")),
        *(("instruction", value) for value in ("put the failed battery aside", "abort button: press it")),
        *(("position_error", value) for value in ("0.03 m", 0.03)),
    ],
)
def test_what_a_row_says_of_a_failure_that_ended_by_itself_is_no_error(field: str, value: object) -> None:
    assert not broken_off(field, value, failed=True)
