"""The grid's `notify` command: what it is told, how often, and that nobody waits for it."""

from __future__ import annotations

import json
import shlex
from typing import Any

from box import Box, alive, bash, until
from recorded import queue_rows, record
from test_retries import CRASH, HOLD

from comborun.model.judging import WatchRules

RECORDS = """printf '{"episode": %d, "success": true}\\n{"episode": %d, "success": false}\\n' 0 1 \
>>"$COMBORUN_OUTPUT_DIR/records.jsonl"; """


def hook(box: Box, command: str = 'cat >>"$COMBORUN_RUN_DIR/notices"', *, every_ms: int = 600000) -> dict[str, Any]:
    """Write dispatch/notify.sh as a launch would; returns fields of policy.json."""
    box.write(
        "dispatch/notify.sh",
        f"""#!/usr/bin/env bash
export WORD='two words' COMBORUN_RUN_DIR={shlex.quote(str(box.directory))}
exec bash -c '{command}'
""",
    )
    return {"notify_every_ms": every_ms, "breaker": 0}


def notices(box: Box, kind: str = "") -> list[dict[str, Any]]:
    file = box.directory / "notices"
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    told = [json.loads(line) for line in lines]
    return [notice for notice in told if kind in ("", notice["kind"])]


def test_a_run_that_is_done_says_so_with_substance(box: Box) -> None:
    policy = hook(box)
    box.plan({"env_one": bash(RECORDS, results=("*.jsonl",), count=2)}, policy=policy)
    box.start()
    box.await_done()
    until(lambda: notices(box), "the notice is there")
    (told,) = notices(box)
    assert (told["schema"], told["kind"], told["run"], told["grid"]) == (1, "finished", box.id, "grid")
    assert told["counts"] == {
        "succeeded": 1,
        "partial": 0,
        "failed": 0,
        "cancelled": 0,
        "lost": 0,
        "not_needed": 0,
        "running": 0,
        "queued": 0,
    }
    assert (told["records"], told["planned"], told["successes"], told["suppressed"]) == (2, 2, 1, 0)
    assert told["directory"] == str(box.directory)
    assert told["resume"] == f"bash '{box.directory}'/run_parallel.sh resume"
    assert told["at"].endswith("Z")


def test_only_the_kinds_that_the_grid_names_are_told_and_sessions_that_were_amended_away_do_not_count(box: Box) -> None:
    policy = hook(box) | {"notify_kinds": "finished"}
    box.plan({"env_one": bash("true"), "env_bad": bash("exit 1"), "env_gone": bash("true")}, policy=policy)
    box.write("dispatch/queue.jsonl", queue_rows(env_one="", env_bad="", env_gone="dropped"))
    box.start()
    box.await_done()
    until(lambda: notices(box), "the notice is there")
    assert [told["note"] for told in notices(box)] == ["1 of 2 sessions succeeded"]


NOISE = r"""printf 'one \\ "two"\ttab\n\033[31mred\033[0m \377\376 \303\251\n10%%\r55%%\r99%%\r\n'; """


def test_a_failure_is_told_with_the_last_lines_of_its_log_and_a_stall_once(box: Box) -> None:
    box.plan({"env_bad": bash(NOISE + "exit 7"), "env_good": bash(HOLD)}, policy=hook(box, every_ms=0))
    box.start()
    until(lambda: notices(box), "the notice is there")
    (told,) = notices(box)
    assert (told["kind"], told["session"], told["outcome"], told["cause"], told["class"]) == (
        "failed",
        "env_bad",
        "failed",
        "exited",
        "error",
    )
    assert told["last_lines"] == ['one \\ "two"\ttab', "[31mred[0m  é", "99%"]
    assert told["log"] == str(box.attempt("env_bad") / "log")
    assert (told["counts"]["failed"], told["counts"]["running"]) == (1, 1)
    box.begun("env_good")
    box.write(
        "sessions/env_good/attempt-1/stalled",
        record(since=1.5, reason={"code": "no_progress", "seconds": 1200, "core": 0}),
    )
    until(lambda: notices(box, "stalled"), "the notice is there")
    box.write("go", "")
    box.await_done()
    (stalled,) = notices(box, "stalled")
    assert stalled["note"] == "env_good makes no progress: no new result, no new line and 0 % of a core for 1200 s"


def test_news_of_one_kind_come_once_in_a_while_and_name_what_was_held_back(box: Box) -> None:
    policy = hook(box, every_ms=3000)
    box.plan({f"env_p{i}": bash("exit 1") for i in range(4)} | {"env_last": bash(HOLD)}, parallel=5, policy=policy)
    box.start()
    until(lambda: len(notices(box, "failed")) == 1, "the first is told")
    until(lambda: len(box.told("^notice .*notice=failed")) == 4, "all are known")
    box.kill_dispatcher()  # what was held back outlives its dispatcher
    box.start()
    until(lambda: len(notices(box, "failed")) == 2, "the others are told together")
    first, second = notices(box, "failed")
    assert (first["suppressed"], second["suppressed"]) == (0, 3)
    assert sorted([first["session"], *second["sessions"]]) == [f"env_p{i}" for i in range(4)]
    box.write("go", "")
    box.await_done()
    until(lambda: notices(box, "finished"), "the end is told in any case")


def test_ends_that_came_while_no_dispatcher_lived_are_told_and_counted(box: Box) -> None:
    names = ["env_p0", "env_p1"]
    commands = {name: bash(HOLD + CRASH) for name in names} | {"env_last": bash("true")}
    box.plan(commands, parallel=2, policy={**hook(box), "breaker": 2})
    box.start()
    for name in names:
        box.begun(name)
    box.kill_dispatcher()
    box.write("go", "")
    for name in names:
        box.ended(name)
    box.start()
    until(lambda: notices(box, "failed"), "the failure is told")
    told = [box.told(f"^ended {name} ") + box.told(f"^notice {name} notice=failed") for name in names]
    assert [len(one) for one in told] == [2, 2], "each end is told once"
    assert box.hold_reason
    assert (box.hold_reason.text("failure"), box.hold_reason.count("times")) == ("crashed", 2)
    assert box.begin("env_last") is None


def test_a_stall_that_was_ended_at_once_is_told_too(box: Box) -> None:
    box.environment["COMBORUN_WATCH_S"] = "0.2"
    box.run({"env_one": bash("exec sleep 60", more={"watch": WatchRules(1)})}, policy=hook(box))
    until(lambda: notices(box, "finished"), "the end is told")
    assert box.ended("env_one").cause == "stalled"
    (told,) = notices(box, "stalled")
    assert told["session"] == "env_one"
    assert told["note"].count("no new result") == 1, "the reason stands there once"


def test_trouble_of_the_host_is_told(box: Box) -> None:
    policy = hook(box) | {"breaker": 2}
    box.plan({f"env_p{i}": bash("sleep 0.3; kill -SEGV $$") for i in range(4)}, parallel=1, policy=policy)
    box.start()
    until(lambda: notices(box, "host"), "the notice is there")
    assert notices(box, "host")[0]["note"] == "the run is halted: 2 failures of one kind in a row on this host: crashed"


def test_a_command_that_hangs_holds_up_nobody_and_is_ended(box: Box) -> None:
    box.environment["COMBORUN_NOTIFY_S"] = "1"
    policy = hook(box, 'echo $$ >"$COMBORUN_RUN_DIR/pid"; exec sleep 60')
    box.plan({"env_one": bash("exit 1"), "env_two": bash("true")}, parallel=1, policy=policy)
    box.start()
    box.await_done()
    until((box.directory / "pid").exists, "the command runs")
    until(lambda: (box.directory / "pid").read_text().strip(), "it has said who it is")
    until(lambda: not alive(int((box.directory / "pid").read_text())), "it is ended")


def test_what_the_command_prints_is_kept_up_to_a_bound_and_that_it_failed_is_told(box: Box) -> None:
    policy = hook(box, 'cat >/dev/null; yes | head -c 3000000; echo "$BASHPID" >"$COMBORUN_RUN_DIR/through"; exit 3')
    box.plan({"env_one": bash("true")}, policy=policy)
    box.start()
    box.await_done()
    out = box.directory / "dispatch/notify.out"
    ended = "notify: the command ended with code 3\n"
    until(lambda: out.exists() and out.read_text().endswith(ended), "its end is told")
    assert (box.directory / "through").exists(), "it could print all that it wanted"
    assert out.stat().st_size < 70_000


def test_a_test_notice_that_takes_too_long_is_ended_and_that_is_said(box: Box) -> None:
    box.environment["COMBORUN_NOTIFY_S"] = "1"
    hook(box, "setsid sleep 30 & exec sleep 60")
    box.plan({"env_one": bash("true")})
    tried = box.program("control", "notify")
    assert (tried.returncode, tried.stderr) == (124, "notify: the command was ended: it took longer than 1 s\n")
