"""A retry that makes only the tail that is missing: what it is told, how it is judged, what is linked."""

from __future__ import annotations

import subprocess

import pytest
from box import Box, Script, bash
from recorded import record

from comborun.attempt import Begin
from comborun.host import chain
from comborun.host.attempts import RunDirectory

RANGED = ("ranged=1", "episode=episode")
SHOW = 'echo "$COMBORUN_FIRST_EPISODE $COMBORUN_LAST_EPISODE $COMBORUN_EPISODES"\n'
WRITE = """
for ((i = COMBORUN_FIRST_EPISODE; i <= COMBORUN_LAST_EPISODE; i++)); do
  printf '{"episode": %d, "success": true}\\n' "$i"
done >"$COMBORUN_OUTPUT_DIR/records.jsonl"
"""


def ranged(first: int = 10, count: int = 10, *constants: str, text: str = SHOW + WRITE) -> Script:
    return bash(text, first=first, count=count, results=("*.jsonl",), constants=constants or RANGED)


def tail(box: Box) -> str:
    """The first episode and how many; empty for all of them."""
    return " ".join(map(str, RunDirectory(str(box.directory)).tail("one") or ()))


def accepted(box: Box) -> list[int]:
    return chain.accepted(RunDirectory(str(box.directory)), "one")


def link(box: Box) -> None:
    RunDirectory(str(box.directory)).link(["one"])


def attempt(box: Box, number: int = 1) -> None:
    command = box.supervisor("one", number)
    subprocess.run(command, env=box.environment, stdout=subprocess.DEVNULL, timeout=30, check=True)


def past(box: Box, number: int, first: int, count: int, rows: str | list[int], *rules: str) -> None:
    """An attempt of `one` that has ended without being complete, as its files tell; `rows` are episodes or raw text."""
    if not isinstance(rows, str):
        rows = "".join(f'{{"episode": {episode}, "success": true}}\n' for episode in rows)
    told = dict(rule.split("=", 1) for rule in rules or RANGED)
    at = f"sessions/one/attempt-{number}"
    box.write(f"{at}/claim", record(first=first, count=count, files=["*.jsonl"], **told))
    box.write(f"{at}/out/records.jsonl", rows)
    box.write(f"{at}/end", f'{{"completeness": "partial", "cause": "signal", "records": "{len(rows.splitlines())}"}}\n')


def test_a_grant_tells_the_part_that_an_attempt_makes_and_its_end_is_judged_by_that(box: Box) -> None:
    box.plan({"one": ranged()})
    past(box, 1, 10, 10, [10, 11, 12, 13])
    box.write("sessions/one/attempt-2/grant", '{"gpus": "", "first": 14, "count": 6}\n')
    attempt(box, 2)
    begin = Begin.parse((box.attempt("one", 2) / "begin").read_text())
    end = box.end("one", 2)
    assert box.log("one", 2) == "14 19 6\n"
    assert (begin.first, begin.count) == (14, 6)
    assert end
    assert (end.completeness, end.records) == ("complete", 6)
    claim = box.fields("sessions/one/attempt-2/claim")
    assert (claim["first"], claim["count"], claim["ranged"], claim["episode"]) == ("14", "6", "1", "episode")


@pytest.mark.parametrize(
    "grant",
    ['{"first": 14, "count": 6}\n', '{"first": "x", "count": 6}\n', '{"first": 14, "count": 0}\n', '{"first": 14}\n'],
)
def test_a_command_that_takes_no_range_and_a_grant_that_tells_none_make_all(box: Box, grant: str) -> None:
    takes = grant != '{"first": 14, "count": 6}\n'
    box.plan({"one": ranged(10, 10, *(RANGED if takes else ("episode=episode",)))})
    box.write("sessions/one/attempt-1/grant", grant)
    attempt(box)
    assert box.log("one") == "10 19 10\n"


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
    "text": ('{"episode": "stairs/ep_0010"}\n{"x": 1, "episode" : "11"}\r\n', "12 8"),
    "float": ('{"episode": 10.0, "success": 1}\n', "11 9"),
    "torn": ('{"episode": 10, "success": 1}\n{"episode": 11, "succ', "11 9"),
    "no index": ('{"episode": 10}\n{"episode": "last"}\n', ""),
    "no field": ('{"episode": 10}\n{"index": 11}\n', ""),
    "half": ('{"episode": 10.5}\n', ""),
    "negative": ('{"episode": -10}\n', ""),
    "nested": ('{"episode": 10, "info": {"episode": 11}, "success": true}\n', "11 9"),
    "big": ('{"episode": 99999999999999999999}\n', ""),
    "leading zeros": ('{"episode": "0010"}\n{"episode": "008"}\n', ""),
}


@pytest.mark.parametrize("case", ROWS)
def test_only_what_is_missing_at_the_end_for_certain_is_a_tail(box: Box, case: str) -> None:
    rows, expected = ROWS[case]
    past(box, 1, 10, 10, rows)
    assert tail(box) == expected


def test_without_a_range_or_a_plan_there_is_no_tail(box: Box) -> None:
    past(box, 1, 10, 10, [10, 11], "ranged=0", "episode=episode")
    assert tail(box) == ""
    past(box, 1, 10, 0, [10, 11])
    assert tail(box) == ""


def test_a_field_of_any_name_is_meant_literally(box: Box) -> None:
    past(box, 1, 10, 10, '{"a.b[0]": 10, "axb[0]": 3}\n', "ranged=1", "episode=a.b[0]")
    assert tail(box) == "11 9"


def test_tails_follow_on_each_other(box: Box) -> None:
    past(box, 1, 10, 10, [10, 11])
    past(box, 2, 12, 8, [12, 13, 14])
    assert tail(box) == "15 5"
    past(box, 3, 15, 5, [])
    assert tail(box) == "15 5"
    past(box, 4, 15, 5, [15])
    assert tail(box) == "16 4"
    assert accepted(box) == [1, 2, 4]


def test_two_wholes_give_no_tail_that_would_need_both(box: Box) -> None:
    past(box, 1, 10, 10, [10, 11, 15])
    past(box, 2, 10, 10, [12, 13])
    assert tail(box) == ""
    assert accepted(box) == [1]


def test_attempts_that_came_to_nothing_do_not_matter(box: Box) -> None:
    box.write("sessions/one/attempt-1/claim", "")
    box.write("sessions/one/attempt-1/end", '{"cause": "launch_failed", "completeness": "none", "records": 0}\n')
    assert tail(box) == ""
    past(box, 2, 10, 10, [10])
    box.write("sessions/one/attempt-3/grant", '{"gpus": ""}\n')
    assert tail(box) == "11 9"


def test_the_files_of_a_prefix_and_its_tail_lie_side_by_side(box: Box) -> None:
    box.plan({"one": ranged()})
    past(box, 1, 10, 10, [10, 11, 12, 13])
    box.write("sessions/one/attempt-2/grant", '{"gpus": "", "first": 14, "count": 6}\n')
    attempt(box, 2)
    link(box)
    linked = sorted((box.directory / "results").iterdir())
    assert [path.name for path in linked] == ["one_a2_records.jsonl", "one_records.jsonl"]
    assert sum(len(path.read_text().splitlines()) for path in linked) == 10


def test_a_whole_attempt_stands_alone(box: Box) -> None:
    box.plan({"one": ranged()})
    past(box, 1, 10, 10, [10, 11, 13])
    attempt(box, 2)
    past(box, 3, 10, 10, list(range(10, 19)))
    link(box)
    assert [path.resolve().parts[-3] for path in (box.directory / "results").iterdir()] == ["attempt-2"]
