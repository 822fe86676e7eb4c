"""Results that change after the end of their session: status and report say so alike, and count what is there."""

from __future__ import annotations

import os

import pytest
from box import Box, Script, python

from comborun.host.record.attempt_lineage import tail
from comborun.host.record.run_directory import RunDirectory
from comborun.model.judging import EvidenceRules
from comborun.rules.results.result_files import changed, fingerprint

ROWS = """import json, os
out = os.environ["COMBORUN_OUTPUT_DIR"]
first, count = int(os.environ["COMBORUN_FIRST_EPISODE"]), int(os.environ["COMBORUN_EPISODES"])
made = min(count, {made})
with open(out + "/r.jsonl", "w") as file:
    for episode in range(first, first + made):
        file.write(json.dumps({{"episode": episode, "success": True}}) + "\\n")
if made < count: raise SystemExit(3)
"""
AS_MANY_AS_IT_LIKES = """import json, os
with open(os.environ["COMBORUN_OUTPUT_DIR"] + "/r.jsonl", "w") as file:
    for episode in range(6):
        file.write(json.dumps({"episode": episode, "success": True}) + "\\n")
print("all done")
"""
ELSEWHERE = """import json, os, sys
out = os.environ["COMBORUN_OUTPUT_DIR"]
first, count = int(os.environ["COMBORUN_FIRST_EPISODE"]), int(os.environ["COMBORUN_EPISODES"])
fixed = os.environ["COMBORUN_RUN_DIR"] + "/fixed.jsonl"
os.symlink(fixed, out + "/r.jsonl")
with open(fixed, "w") as file:
    for episode in range(first, first + min(count, 2)):
        file.write(json.dumps({"episode": episode, "success": True}) + "\\n")
if count > 2: sys.exit(3)
"""


def ranged(text: str, count: int = 4) -> Script:
    return python(text, count=count, results=("*.jsonl",), more={"ranged": True})


def told(box: Box, number: int = 1) -> dict[str, str]:
    """The end of an attempt as the probe answers."""
    return next(one["end"] for one in box.look()["attempts"] if one["number"] == number)


def counted(box: Box, number: int = 1) -> tuple[str, bool]:
    """Its records, and whether it says that they have changed."""
    end = told(box, number)
    return end["records"], "results_changed" in str(end.get("facts", ""))


CHANGES = {
    "rewritten": lambda path: path.write_text('{"episode": 3, "success": false}\n'),
    "deleted": lambda path: path.unlink(),
    "longer": lambda path: path.write_text(path.read_text() + '{"episode": 9, "success": true}\n'),
    "of the same size": lambda path: path.write_text(path.read_text().replace('"episode": 1', '"episode": 2')),
}
LEFT = {"rewritten": "1", "deleted": "0", "longer": "4", "of the same size": "3"}
OUTCOMES = {"rewritten": "partial", "deleted": "failed", "longer": "succeeded", "of the same size": "partial"}


@pytest.mark.parametrize("how", CHANGES)
def test_results_that_changed_after_an_end_are_counted_as_they_are_and_said(box: Box, how: str) -> None:
    box.run({"env_one": python(ROWS.format(made=4), count=4, results=("*.jsonl",))})
    assert counted(box) == ("4", False)
    file = box.attempt("env_one") / "out/r.jsonl"
    os.utime(file)
    assert counted(box) == ("4", False), "only its time is another"
    CHANGES[how](file)
    assert counted(box) == (LEFT[how], True)
    assert told(box)["outcome"] == OUTCOMES[how]


@pytest.mark.parametrize("evidence", [EvidenceRules(), EvidenceRules(line="all done")])
def test_a_session_that_promised_no_episodes_has_not_succeeded_without_its_only_file(
    box: Box, evidence: EvidenceRules
) -> None:
    box.run({"env_one": python(AS_MANY_AS_IT_LIKES, count=0, results=("*.jsonl",), more={"evidence": evidence})})
    assert (told(box)["outcome"], counted(box)) == ("succeeded", ("6", False))
    (box.attempt("env_one") / "out/r.jsonl").unlink()
    assert (told(box)["outcome"], told(box)["class"], counted(box)) == ("failed", "no_result", ("0", True))
    assert box.program("control", "retry", "--failed").returncode == 0


def test_what_was_deleted_can_be_made_again(box: Box) -> None:
    box.run({"env_one": python(ROWS.format(made=4), count=4, results=("*.jsonl",))})
    refused = box.program("control", "retry", "env_one")
    assert (refused.returncode, "has succeeded" in refused.stdout) == (1, True)
    (box.attempt("env_one") / "out/r.jsonl").unlink()
    assert box.program("control", "retry", "env_one").returncode == 0
    box.start()
    assert box.ended("env_one", 2).clean
    assert counted(box, 2) == ("4", False)


def test_a_session_whose_results_are_links_to_elsewhere_gets_no_tail(box: Box) -> None:
    box.plan({"env_one": ranged(ELSEWHERE)}, attempts=1)
    box.start()
    box.ended("env_one")
    assert tail(RunDirectory(str(box.directory)), "env_one") is None


def test_a_session_whose_results_lie_in_its_folder_gets_one(box: Box) -> None:
    box.plan({"env_one": ranged(ROWS.format(made=2))}, attempts=1)
    box.start()
    box.ended("env_one")
    run = RunDirectory(str(box.directory))
    assert tail(run, "env_one") == (2, 2)
    (box.attempt("env_one") / "out/r.jsonl").write_text('{"episode": 0, "success": true}\n')
    assert tail(run, "env_one") is None, "who knows what else will change"


def test_a_fingerprint_tells_files_apart(tmp_path) -> None:
    (tmp_path / "a.jsonl").write_text("x" * 10000)
    before = fingerprint(str(tmp_path), ["*.jsonl"])
    assert not changed(str(tmp_path), ["*.jsonl"], before, 0.0)
    assert not changed(str(tmp_path), ["*.jsonl"], "", 0.0), "a run of the former version"
    (tmp_path / "a.jsonl").rename(tmp_path / "b.jsonl")
    assert changed(str(tmp_path), ["*.jsonl"], before, 0.0)
