"""The results of a run in one folder, and the grid's own command that runs over them when all has ended."""

from __future__ import annotations

from box import Box, bash, until
from traces import NAMES, RECORD, STARTED, starts


def test_results_are_links_with_the_sessions_name_where_two_share_one(box: Box) -> None:
    own = bash('echo "{}" >"$COMBORUN_OUTPUT_DIR/$RANDOM-$$.jsonl"; ' + RECORD, results=("*.jsonl",))
    deep = bash('mkdir "$COMBORUN_OUTPUT_DIR/a b"; ' + RECORD.replace("/records", "/a b/deep"), results=("**/*.jsonl",))
    box.run({"env_one": own, "env_two": own, "env_deep": deep, "env_none": bash("true")})
    links = {file.name: file for file in (box.directory / "results").iterdir()}
    assert {"env_one_records.jsonl", "env_two_records.jsonl", "deep.jsonl"} <= set(links)
    assert len(links) == 5
    assert all(file.is_symlink() and not file.readlink().is_absolute() for file in links.values())
    assert all(file.read_text().startswith("{") for file in links.values())


def test_after_runs_once_when_all_have_ended_and_sees_their_results(box: Box) -> None:
    after = bash(STARTED + 'cat "$COMBORUN_RESULTS_DIR"/*.jsonl >"$COMBORUN_RESULTS_DIR/report.txt"')
    sessions = {name: bash(RECORD + "sleep 0.1", results=("*.jsonl",)) for name in NAMES[:3]}
    box.run({**sessions, "after": after})
    assert box.done["after"] == "succeeded"
    assert (box.directory / "results/report.txt").read_text().count("success") == 3
    box.start()
    assert starts(box, "after") == ["1"]
    assert box.told("^(granted|ended)")[-2].startswith("granted after 1")


def test_after_runs_again_when_it_was_lost_and_not_when_it_failed(box: Box) -> None:
    box.run({"env_one": bash("true"), "after": bash(STARTED + 'kill -KILL "$PPID" $$')}, attempts=2)
    assert box.done["after"] == "lost"
    assert starts(box, "after") == ["1", "2"]
    box.lay("after", bash(STARTED + "exit 3"))
    for _ in range(2):
        box.start()
        until(lambda: box.done.get("after") == "failed", "after has failed")
        until(lambda: not box.dispatcher_lives, "the dispatcher leaves")
    assert starts(box, "after") == ["1", "2", "3"]


def test_after_runs_again_when_a_resume_added_results(box: Box) -> None:
    wait = "if [[ $COMBORUN_ATTEMPT == 1 ]]; then sleep 60; fi; " + RECORD
    count = bash('ls "$COMBORUN_RESULTS_DIR" | wc -l')
    box.plan(
        {"env_one": bash(RECORD, results=("*.jsonl",)), "env_two": bash(wait, results=("*.jsonl",)), "after": count}
    )
    box.start()
    box.begun("env_two")
    box.stop("env_two")
    box.await_done()
    assert box.log("after", 1) == "1\n"
    box.start()
    until(lambda: len(box.told("^done")) == 2, "the resumed run is done")
    assert box.log("after", 2) == "2\n"
