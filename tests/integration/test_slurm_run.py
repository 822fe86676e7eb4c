"""A run whose sessions Slurm starts: the same evidence, the same ends, retries, `after`, the record that it is done."""

import json

import pytest
from box import bash
from slurm_box import SlurmBox

from comborun.rules.words import Cause

RECORDS = """for i in $(seq "$COMBORUN_FIRST_EPISODE" "$COMBORUN_LAST_EPISODE"); do
printf '{"episode": %d, "success": true}\\n' $i >>"$COMBORUN_OUTPUT_DIR/records.jsonl"; done"""
RESULTS = ("*.jsonl",)


def test_a_run_of_several_sessions_ends_like_one_of_the_dispatcher(slurm_box: SlurmBox) -> None:
    box = slurm_box
    sessions = {f"env_{name}": bash(RECORDS, count=3, results=RESULTS) for name in ("one", "two", "three")}
    failing = bash("[[ $COMBORUN_ATTEMPT == 2 ]] || kill -SEGV $$; " + RECORDS, count=3, results=RESULTS)
    after = bash('ls "$COMBORUN_RESULTS_DIR" | wc -l')
    box.lay_out({**sessions, "env_four": failing, "after": after}, policy={"retry_crashed": 1})
    assert "submitted 4 of 4 sessions" in box.submit()
    assert "on their way" in box.submit()
    done = box.await_end()
    assert (done["succeeded"], done["after"]) == ("4", "succeeded")
    assert box.log("after").strip() == "4"
    assert [cause for cause, _ in box.ends("env_four")] == ["signal", "exited"]
    for name in box.names[:3]:
        assert box.ends(name) == [("exited", "complete")]
    assert "nothing is left to do" in box.submit()


@pytest.mark.parametrize("cause", ["lost", "stopped"])
def test_an_after_that_was_lost_or_cancelled_is_run_again(slurm_box: SlurmBox, cause: str) -> None:
    box = slurm_box
    box.lay_out({"env_one": bash("true"), "after": bash("true")})
    box.submit()
    box.await_end()
    box.wait_for(lambda: not box.slurm.tasks(), "nothing is left in the queue")
    end = (box.attempt("after") / "end").read_text()
    end = end.replace('"exited"', f'"{cause}"').replace('"complete"', '"none"')
    box.write("sessions/after/attempt-1/end", end)
    assert "ends the run" in box.submit()
    assert box.await_end()["after"] == "succeeded"
    assert box.ended("after", 2).cause is Cause.EXITED
    assert box.settle("--person").stderr == ""


def test_a_smoke_test_comes_first_and_a_halt_holds_the_rest(slurm_box: SlurmBox) -> None:
    box = slurm_box
    sessions = {f"env_{name}": bash(RECORDS, count=1, results=RESULTS) for name in ("tried", "one")}
    broken = {f"env_broken{i}": bash("exit 3") for i in range(3)}
    box.lay_out({**sessions, **broken}, policy={"fail_fast": 2, "notify_kinds": "failed,host,finished"})
    rows = ["env_tried\t0\tsmoke", "env_one\t0\t-", *(f"{name}\t0\t-" for name in broken)]
    box.write("dispatch/queue.tsv", "\n".join([*rows, ""]))
    box.write("dispatch/notify.sh", 'cat >>"${0%/*}/heard"\n')
    assert "submitted 1 of 1 sessions" in box.submit("--parallel", "1")
    box.wait_for(lambda: box.told("^halted"), "it is halted")
    assert box.told("^smoke passed")
    first = (box.attempt("env_tried") / "end").stat().st_mtime
    others = [file for file in box.directory.glob("sessions/*/attempt-1/claim") if "env_tried" not in str(file)]
    assert others
    assert all(file.stat().st_mtime >= first for file in others)
    box.wait_for(lambda: not box.slurm.tasks(), "nothing is left in the queue")
    assert not box.done
    assert sum(bool(box.ends(name)) for name in broken) == 2
    heard = [json.loads(line) for line in (box.directory / "dispatch/heard").read_text().splitlines()]
    assert {notice["kind"] for notice in heard} == {"failed", "host"}
    assert "halted" in box.submit()
    assert box.program("control", "resume").returncode == 0
    assert "submitted" in box.submit()
    assert box.await_end()["failed"] == "3"
