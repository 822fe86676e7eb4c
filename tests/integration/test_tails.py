"""A retry that makes only the tail that is missing: what it is told, how it is judged, what is linked."""

from __future__ import annotations

import subprocess

import pytest
from box import Box, Script, bash
from recorded import record

from comborun.attempt import Begin

RANGED = ("ranged=1", "episode=episode")
SHOW = 'echo "$COMBORUN_FIRST_EPISODE $COMBORUN_LAST_EPISODE $COMBORUN_EPISODES"\n'
WRITE = """
for ((i = COMBORUN_FIRST_EPISODE; i <= COMBORUN_LAST_EPISODE; i++)); do
  printf '{"episode": %d, "success": true}\\n' "$i"
done >"$COMBORUN_OUTPUT_DIR/records.jsonl"
"""


def ranged(first: int = 10, count: int = 10, *constants: str, text: str = SHOW + WRITE) -> Script:
    return bash(text, first=first, count=count, results=("*.jsonl",), constants=constants or RANGED)


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
