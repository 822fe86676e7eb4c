"""Where attempts are in their life, the ends that nobody wrote, retries, and what attempts made together."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

import pytest
import recorded

from comborun.host.engines.slurm import Slurm
from comborun.host.record import attempt_lineage, end_record, judging
from comborun.host.record.judging import Rules
from comborun.host.record.run_directory import NAMELESS_S, RunDirectory, stopping
from comborun.host.supervise.attempt import Attempt
from comborun.host.system import files, process
from comborun.rules import records
from comborun.rules.endings.evidence import Evidence, fact
from comborun.rules.names import AttemptLayout
from comborun.rules.vocabulary import Life, outcome_of

JUDGING = recorded.judging(policy="mason", environment="stairs", files=["*.jsonl"], ranged=True)
DEAD = {"supervisor": "1", "supervisor_start": "never", "pid": "1", "pid_start": "never"}


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    (tmp_path / "dispatch").mkdir()
    (tmp_path / "id").write_text("run-1\n")
    (tmp_path / "dispatch/policy.json").write_text(record(attempts=3, parallel="many"))
    return RunDirectory(str(tmp_path))


def claim(run: RunDirectory, number: int, first: int = 0, count: int = 10) -> Path:
    at = run.at("s", number)
    Path(at.output).mkdir(parents=True)
    Path(at.claim).write_text(record(**dict(Rules(JUDGING, first, count).fields()), **DEAD))
    return Path(at.directory)


def record(**fields: object) -> str:
    return records.render([*fields.items(), ("boot", process.boot_id())])


def end(run: RunDirectory, number: int, rows: str, first: int = 0) -> None:
    """An attempt that has ended, with these episodes, a letter each: success, failure, errored or nothing."""
    folder = claim(run, number, first, 10 - first)
    words = {"s": True, "f": False, "e": None}
    told = [{"episode": first + at, "success": words[one]} for at, one in enumerate(rows) if one != "."]
    (folder / "out/r.jsonl").write_text("".join(json.dumps(one) + "\n" for one in told))
    at = run.at("s", number)
    assert end_record.write_end(at, end_record.Ending("exited", "", 1, 1.0), judging.judge(at, 1))


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LookupError):
        RunDirectory(str(tmp_path))


def test_the_policy_has_defaults_and_no_value_that_is_none(run: RunDirectory) -> None:
    assert (run.policy["attempts"], run.policy["parallel"], run.policy["breaker"]) == ("3", "1", "3")


def test_the_life_of_an_attempt(run: RunDirectory) -> None:
    assert run.latest("s") == 0
    at = run.at("s", 1)
    Path(at.directory).mkdir(parents=True)
    assert (run.latest("s"), run.glance("s", 1).life) == (0, Life.QUEUED)
    Path(at.grant).write_text('{"gpus": "0"}\n')
    assert (run.latest("s"), run.glance("s", 1).life) == (1, Life.STARTING)
    pid, start = (process.identity()[key] for key in ("pid", "start"))
    me = {"supervisor": pid, "supervisor_start": start}
    Path(at.claim).write_text(record(**DEAD))
    assert run.look("s", 1).life == Life.LOST
    Path(at.claim).write_text("")
    lock = files.lock(f"{run.path}/sessions/s/lock")
    assert run.look("s", 1).life == Life.STARTING, "it has not signed its claim yet"
    os.close(lock)
    Path(at.claim).write_text(record(**me))
    assert run.glance("s", 1).life == Life.STARTING
    Path(at.begin).write_text(record(**me))
    assert run.glance("s", 1).life == Life.RUNNING
    Path(at.begin).write_text(record(supervisor=1, supervisor_start=2, pid=pid, pid_start=start))
    assert run.look("s", 1).life == Life.ORPHANED
    Path(at.begin).write_text(record(**DEAD))
    assert run.look("s", 1).life == Life.LOST
    lock = files.lock(f"{run.path}/sessions/s/lock")
    assert (run.glance("s", 1).life, run.look("s", 1).life) == (Life.LOST, Life.ORPHANED)
    os.close(lock)
    Path(at.end).write_text('{"cause": "exited"}\n')
    assert run.look("s", 1).life == Life.ENDED


@pytest.mark.parametrize("text", ["", "\0", '{"supervisor": ""}\n', "nonsense"])
def test_a_claim_that_nobody_can_read_is_of_one_that_is_lost(run: RunDirectory, text: str) -> None:
    Path(claim(run, 1), "claim").write_text(text)
    assert run.look("s", 1).life == Life.LOST


def test_an_end_of_another_start_is_none(run: RunDirectory) -> None:
    folder = claim(run, 1)
    (folder / "claim").write_text('{"nonce": "mine"}\n')
    (folder / "end").write_text('{"cause": "exited", "nonce": "another"}\n')
    assert run.end("s", 1) == {}
    (folder / "end").write_text('{"cause": "exited", "nonce": "mine"}\n')
    assert run.end("s", 1)["cause"] == "exited"


def test_what_is_forestalled_never_begins(run: RunDirectory) -> None:
    assert run.cancel_unstarted("s", 1, "stopped", "because")
    assert outcome_of(run.end("s", 1)) == "cancelled"
    assert not run.cancel_unstarted("s", 1, "stopped", "because")
    claim(run, 2)
    assert not run.cancel_unstarted("s", 2, "stopped", "because")


def test_a_lost_attempt_is_judged_by_what_it_left(run: RunDirectory) -> None:
    folder = claim(run, 1)
    (folder / "out/r.jsonl").write_text('{"episode": 0, "success": true}\n')
    assert run.finalize_lost("s", 1)
    told = run.end("s", 1)
    assert (told["cause"], told["completeness"], told["class"], told["records"]) == ("lost", "partial", "lost", "1")
    assert run.finalize_lost("s", 1)
    assert run.end("s", 1) == told


def test_what_a_lost_attempt_left_behind_is_ended(run: RunDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMBORUN_GRACE_S", "0")
    claim(run, 1)
    marked = dict(os.environ, COMBORUN_SESSION="run-1/s/1")
    with subprocess.Popen(["sleep", "600"], env=marked) as left:
        while not process.carries(left.pid, "run-1/s/1"):
            time.sleep(0.01)
        assert run.finalize_lost("s", 1)
        assert left.wait(10) != 0


def test_a_verdict_that_nobody_lived_to_record_keeps_its_reason(run: RunDirectory) -> None:
    folder = claim(run, 1)
    (folder / ".verdict").write_text('{"cause": "stalled", "note": "no new line"}\n')
    assert run.finalize_lost("s", 1)
    assert run.end("s", 1)["cause"] == "stalled"
    assert run.end("s", 1)["note"] == "no new line", "of a supervisor of the former version"
    assert run.end("s", 1)["ending"] == (fact(Evidence.SUPERVISOR_DIED),)


def test_a_verdict_is_kept_as_a_fact(run: RunDirectory) -> None:
    folder, why = claim(run, 1), fact(Evidence.RAN_TOO_LONG, limit_s=3)
    (folder / ".verdict").write_text(record(cause="timed_out", reason=why.as_data()))
    assert run.finalize_lost("s", 1)
    assert run.end("s", 1)["ending"] == (why, fact(Evidence.SUPERVISOR_DIED))
    assert run.end("s", 1)["outcome"] == "failed"


def test_a_mark_whose_stopper_is_gone_stops_nothing(run: RunDirectory) -> None:
    at = run.at("s", 1)
    folder = claim(run, 1)
    assert not stopping(at)
    (folder / "stop").write_text(record(by="stop", pid=1, start="never"))
    assert not stopping(at)
    (folder / "stop").write_text(record(by="stop", pid=1, start="never", signalled=1))
    assert stopping(at)
    pid, start = (process.identity()[key] for key in ("pid", "start"))
    (folder / "stop").write_text("")
    assert stopping(at), "a full disk left no room for a name"
    old = time.time() - NAMELESS_S - 1
    os.utime(folder / "stop", (old, old))
    assert not stopping(at)
    (folder / "stop").write_text(record(by="stop", pid=pid, start=start))
    assert stopping(at)
    assert run.finalize_lost("s", 1)
    assert run.end("s", 1)["cause"] == "stopped"


ROWS: dict[str, tuple[str | list[int], str]] = {
    "a prefix": ([10, 11, 12], "13 7"),
    "in any order": ([12, 10, 11], "13 7"),
    "nothing": ([], ""),
    "a gap": ([10, 11, 13], ""),
    "no beginning": ([11, 12], ""),
    "all": (list(range(10, 20)), ""),
    "all but one": (list(range(10, 19)), "19 1"),
    "twice": ([10, 10, 11], "12 8"),
    "another count": ([0, 1, 2], ""),
    "torn": ('{"episode": 10, "success": 1}\n{"episode": 11, "succ', "11 9"),
    "no index": ('{"episode": 10}\n{"episode": "last"}\n', ""),
}


@pytest.mark.parametrize("case", ROWS)
def test_only_what_is_missing_at_the_end_for_certain_is_a_tail(run: RunDirectory, case: str) -> None:
    rows, expected = ROWS[case]
    past(run, 1, 10, 10, rows)
    assert tail(run) == expected


def past(run: RunDirectory, number: int, first: int, count: int, rows: str | list[int]) -> None:
    """An attempt that has ended without being complete; `rows` are episodes or raw text."""
    if not isinstance(rows, str):
        rows = "".join(f'{{"episode": {episode}, "success": true}}\n' for episode in rows)
    folder = claim(run, number, first, count)
    (folder / "out/r.jsonl").write_text(rows)
    (folder / "end").write_text(record(completeness="partial", cause="signal", records=len(rows.splitlines())))


def tail(run: RunDirectory) -> str:
    """The first episode and how many; empty for all of them."""
    return " ".join(map(str, attempt_lineage.tail(run, "s") or ()))


def test_an_attempt_at_a_tail_is_judged_by_the_number_of_its_episodes(run: RunDirectory) -> None:
    judging = {"ranged": True, "evidence": {"line": "all {episodes} done"}}
    session = {"first": 0, "count": 10, "judging": judging}
    Path(run.layout.session("s")).mkdir(parents=True)
    Path(run.layout.session("s"), "session.json").write_text(json.dumps(session))
    attempt = Attempt(run.path, "s", "2")
    attempt.read({"first": "7", "count": "3"})
    assert (attempt.rules.span, attempt.rules.line) == ((7, 3), "all 3 done")
    before = attempt.rules
    attempt.read({"first": "7", "count": "3"})
    assert attempt.rules is before, "a start that was rehearsed parses nothing again"
    attempt.read({})
    assert (attempt.rules.span, attempt.rules.line) == ((0, 10), "all 10 done")
    judging["evidence"] = {"line": "over"}
    Path(run.layout.session("s"), "session.json").write_text(json.dumps(session))
    attempt.read({})
    assert attempt.rules.line == "over"


def test_tails_follow_on_each_other(run: RunDirectory) -> None:
    past(run, 1, 10, 10, [10, 11])
    past(run, 2, 12, 8, [12, 13, 14])
    assert tail(run) == "15 5"
    past(run, 3, 15, 5, [])
    assert tail(run) == "15 5"
    past(run, 4, 15, 5, [15])
    assert tail(run) == "16 4"
    assert attempt_lineage.joined_counts(run, "s").records == 6
    assert attempt_lineage.accepted(run, "s") == [1, 2, 4]


def test_two_wholes_give_no_tail_that_would_need_both(run: RunDirectory) -> None:
    past(run, 1, 10, 10, [10, 11, 15])
    past(run, 2, 10, 10, [12, 13])
    assert tail(run) == ""
    assert attempt_lineage.accepted(run, "s") == [1]


def test_of_a_session_the_lowest_verdict_counts(run: RunDirectory) -> None:
    end(run, 1, "se..")
    end(run, 2, "ffff")
    told = attempt_lineage.joined_counts(run, "s")
    assert (told.records, told.successes, told.failures) == (4, 1, 3)


def test_results_links_what_counts_and_leaves_the_rest_alone(run: RunDirectory) -> None:
    end(run, 1, "sfe")
    end(run, 2, "sssssss", first=3)
    results = Path(run.layout.results)
    results.mkdir()
    (results / "report.txt").touch()
    (results / "old").symlink_to("nowhere")
    attempt_lineage.link(run, ["s"])
    assert sorted(path.name for path in results.iterdir()) == ["report.txt", "s_a2_r.jsonl", "s_r.jsonl"]
    assert (results / "s_r.jsonl").read_text().count("\n") == 3
    assert (results / "s_a2_r.jsonl").read_text().count("\n") == 7


@pytest.mark.parametrize(
    ("pattern", "name", "shown"),
    [
        ("eval_*.jsonl", "eval_1.jsonl", {"eval_1_s.jsonl", "eval_1_s_a2.jsonl"}),
        ("**/*_eval.jsonl", "deep/x_eval.jsonl", {"s_deep_x_eval.jsonl", "s_a2_deep_x_eval.jsonl"}),
        ("r.jsonl", "r.jsonl", {"s_r.jsonl", "s_a2_r.jsonl"}),
    ],
)
def test_a_link_of_two_files_of_one_name_has_the_form_that_the_grid_asks_for(
    run: RunDirectory, pattern: str, name: str, shown: set[str]
) -> None:
    for number, rows in ((1, "sfe"), (2, "sssssss")):
        end(run, number, rows, first=0 if number == 1 else 3)
        folder = Path(run.path, "sessions", "s", f"attempt-{number}")
        claimed = json.loads((folder / "claim").read_text())
        claimed["judging"]["results"] = {"files": [pattern]}
        (folder / "claim").write_text(json.dumps(claimed))
        (folder / "out" / name).parent.mkdir(exist_ok=True)
        (folder / "out" / "r.jsonl").rename(folder / "out" / name)
    attempt_lineage.link(run, ["s"])
    assert {path.name for path in Path(run.layout.results).iterdir()} == shown


class Nodes(Slurm):
    """Another machine, which says what lives there."""

    def __init__(self, life: str) -> None:
        self.said = life
        self.frozen: list[str] = []

    def life(self, at: AttemptLayout, record: object) -> str:
        assert at
        return self.said

    def why(self, claim: object, begin: object) -> tuple[str, str]:
        assert claim
        assert begin
        return "preempted", "another job took its node"

    def freeze(self, at: AttemptLayout) -> None:
        self.frozen.append(at.directory)


def test_of_attempts_on_other_machines_no_pid_and_no_lock_says_anything(run: RunDirectory) -> None:
    folder = claim(run, 1)
    lock = files.lock(f"{run.path}/sessions/s/lock")
    run.backend = Nodes(Life.RUNNING)
    assert run.look("s", 1).life == Life.STARTING
    pid, start = (process.identity()[key] for key in ("pid", "start"))
    (folder / "begin").write_text(record(supervisor=pid, supervisor_start=start))
    assert run.look("s", 1).life == Life.RUNNING
    run.backend = nodes = Nodes(Life.LOST)
    assert run.look("s", 1).life == Life.LOST
    assert run.finalize_lost("s", 1)
    os.close(lock)
    assert (run.end("s", 1)["cause"], nodes.frozen) == ("preempted", [str(folder)])


@pytest.mark.parametrize(
    ("rows", "lost", "follows"), [("s" * 10, True, False), ("s" * 9, True, True), ("s" * 10, False, True)]
)
def test_another_attempt_that_was_asked_for_before_the_end_is_not_made_if_that_one_is_complete(
    run: RunDirectory, rows: str, lost: bool, follows: bool
) -> None:
    claim(run, 1)
    assert run.ask("s", 1, lost=lost)
    assert run.retried_after("s") == 1, "it has no end yet"
    files.remove(run.at("s", 1).claim)
    Path(run.at("s", 1).output).rmdir()
    end(run, 1, rows)
    assert bool(run.follows("s", 1)) is follows
    assert run.asked("s", 1) is follows


@pytest.mark.parametrize(
    ("first", "last", "outcome"),
    [("sf", "", "partial"), ("", "", "failed"), ("sssss.....", ".....sssss", "succeeded"), ("s", "ss", "partial")],
)
def test_the_end_of_a_run_counts_a_session_by_all_its_attempts(
    run: RunDirectory, first: str, last: str, outcome: str
) -> None:
    """As the monitor and the report do, so that `combo runs` and `combo status` say the same."""
    end(run, 1, first)
    end(run, 2, last)
    assert attempt_lineage.outcome(run, "s", run.end("s", 2)) == outcome
