"""Records that don't count are none wherever a run is looked at: in the table, in status and explain, in the exit code
of `combo run`, in the smoke test, and in the report.
"""

from __future__ import annotations

import json
import shlex
import sys

from box import until
from desk import Desk

PROGRAM = """
import json, os, pathlib, sys, time
first, count = int(sys.argv[1]), int(sys.argv[2])
with open(pathlib.Path(os.environ["COMBORUN_OUTPUT_DIR"], "r.jsonl"), "w") as file:
    for index in range(first, first + count):
        row = eval(sys.argv[3], {"index": index})
        file.write(json.dumps(row) + "\\n")
        print(f"[{index + 1}/{first + count}]", flush=True)
if len(sys.argv) > 4:
    while not os.path.exists(sys.argv[4]):
        time.sleep(0.05)
"""
ROUGH = "{'policy': 'rough', 'episode': index, 'success': True}"
NESTED = "{'episode': index, 'metrics': {'success': True}}"
TABLE = {
    "documented": ("{'episode': index, 'success': index % 2 == 0}", (10, 10, 5), "succeeded", ""),
    "another": (ROUGH, (0, 0, 0), "failed", "all 10 rows say policy 'rough', this session is 'another'"),
    "from-1": ("{'episode': index + 1, 'success': True}", (9, 9, 9), "partial", "planned are 0 to 9"),
    "nested": (NESTED, (10, 0, 0), "partial", "no field 'success'"),
}
"""policy -> what a row of it is, then records, verdicts and successes of ten, the outcome, and what is said"""


def grid(desk: Desk, rows: dict[str, str], *waits_for: str) -> object:
    (desk.home / "program.py").write_text(PROGRAM)
    words = shlex.join([sys.executable, f"{desk.home}/program.py"]), shlex.join(waits_for)
    policies = json.dumps({name: {"row": row} for name, row in rows.items()})
    command = f"{words[0]} {{first_episode}} {{episodes}} {{policy.row}} {words[1]}"
    return desk.grid(policies=policies, environments="[stairs]", episodes="10", command=command)


def test_whoever_looks_sees_the_same_numbers(desk: Desk) -> None:
    ended = desk.combo("run", grid(desk, {policy: row for policy, (row, *_) in TABLE.items()}), code=1)
    sessions = {one["policy"]: one for one in desk.json("status")["sessions"]}
    combos = {one["policy"]: one for one in desk.report()["combos"]}
    listed = desk.combo("runs").stdout
    for policy, (_, counts, outcome, why) in TABLE.items():
        session, combo = sessions[policy], combos[policy]
        assert why in " ".join(ended.stdout.split())
        assert (session["episodes_done"], session["episodes_recorded"], session["successes"]) == counts
        assert (combo["completed"] + combo["errored"], combo["completed"], combo["successes"]) == counts
        assert session["outcome"] == combo["outcome"] == outcome
        reasons = " ".join(desk.json("explain", f"stairs_{policy}")["reasons"])
        assert f"{counts[0]} of 10 episodes done" in reasons
        assert why in reasons
        assert outcome in listed


def test_it_is_said_while_the_first_session_runs(desk: Desk) -> None:
    go_on = desk.home / "go on"
    assert desk.combo("launch", grid(desk, {"mason": ROUGH}, str(go_on))).returncode == 0
    told = json.dumps("all 10 rows say policy 'rough', this session is 'mason'")[:-1]
    until(lambda: told in desk.combo("status", "--json").stdout, "the rows that don't count are told", 20)
    (session,) = desk.json("status")["sessions"]
    assert (session["state"], session["episodes_done"], session["successes"]) == ("running", 0, 0)
    go_on.touch()


def test_a_smoke_test_without_a_verdict_is_none_that_passed(desk: Desk) -> None:
    launched = desk.combo("launch", grid(desk, {"mason": NESTED}), "--smoke", "2", code=1)
    assert "0 of 1 combos have left a record" in launched.stdout
    assert "no field 'success'" in " ".join(launched.stdout.split())
    assert not (desk.runs[-1] / "sessions/stairs_mason/attempt-1/claim").exists()


NAMES = ("o'neill", 'a "b": `c` %s {x}', "🤖 \u200fعين a", "n" * 200)


def test_a_name_of_any_kind_reaches_the_advice_unharmed_and_rows_of_another_policy_are_never_to_be_accepted(
    desk: Desk,
) -> None:
    """Each policy runs the next one: what its rows name is a policy of the grid."""
    others = dict(zip(NAMES, (*NAMES[1:], NAMES[0]), strict=True))
    rows = {name: f"{{'policy': {other!r}, 'episode': index, 'success': True}}" for name, other in others.items()}
    desk.combo("run", grid(desk, rows), code=1)
    for session in desk.json("status")["sessions"]:
        name = session["policy"]
        another, ran = session["facts"][:2]
        assert (another["code"], another["kind"], another["own"]) == ("rows_of_another", "policy", name)
        assert another["named"] == [others[name]]
        assert (another["rows"], another["of"], another["file"], another["line"]) == (10, 10, "r.jsonl", 1)
        assert ran == {"code": "another_ran", "kind": "policy"}
        assert not [fact for fact in session["facts"] if "keys" in fact]
    report = json.dumps(desk.report(), ensure_ascii=False)
    assert "ignore" not in report
    assert report.count("does `command` use {policy}?") >= len(NAMES)
