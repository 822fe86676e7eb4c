"""A run whose sessions Slurm starts: the same evidence, the same ends, retries, `after`, the record that it is done."""

from box import bash
from slurm_box import SlurmBox

RECORDS = """for i in $(seq "$COMBORUN_FIRST_EPISODE" "$COMBORUN_LAST_EPISODE"); do
printf '{"episode": %d, "success": true}\\n' $i >>"$COMBORUN_OUTPUT_DIR/records.jsonl"; done"""
RESULTS = ("*.jsonl",)


def test_a_run_of_several_sessions_ends_like_one_of_the_dispatcher(slurm_box: SlurmBox) -> None:
    box = slurm_box
    sessions = {f"env_{name}": bash(RECORDS, count=3, results=RESULTS) for name in ("one", "two", "three")}
    waits = "until [[ -e $COMBORUN_RUN_DIR/go ]]; do sleep 0.1; done; [[ $COMBORUN_ATTEMPT == 2 ]] || kill -SEGV $$; "
    failing = bash(waits + RECORDS, count=3, results=RESULTS)
    after = bash('ls "$COMBORUN_RESULTS_DIR" | wc -l')
    box.lay_out({**sessions, "env_four": failing, "after": after}, policy={"retry_crashed": 1})
    assert "submitted 4 of 4 sessions" in box.submit()
    assert "on their way" in box.submit()
    (box.directory / "go").touch()
    done = box.await_end()
    assert (done["succeeded"], done["after"]) == ("4", "succeeded")
    assert box.log("after").strip() == "4"
    assert [cause for cause, _ in box.ends("env_four")] == ["signal", "exited"]
    for name in box.names[:3]:
        assert box.ends(name) == [("exited", "complete")]
    assert "nothing is left to do" in box.submit()
