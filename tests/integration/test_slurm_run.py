"""A run whose sessions Slurm starts: the same evidence, the same ends, retries, `after`, the record that it is done."""

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


def test_an_after_that_was_lost_is_run_again(slurm_box: SlurmBox) -> None:
    box = slurm_box
    box.lay_out({"env_one": bash("true"), "after": bash("true")})
    box.submit()
    box.await_end()
    box.wait_for(lambda: not box.slurm.tasks(), "nothing is left in the queue")
    end = (box.attempt("after") / "end").read_text()
    end = end.replace('"exited"', '"lost"').replace('"complete"', '"none"')
    box.write("sessions/after/attempt-1/end", end)
    assert "ends the run" in box.submit()
    assert box.await_end()["after"] == "succeeded"
    assert box.ended("after", 2).cause is Cause.EXITED
    assert box.program("start").stderr == ""
