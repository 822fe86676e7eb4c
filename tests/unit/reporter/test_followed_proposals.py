"""Lines of `results` that messages propose, followed literally: the report is then that of what the rows hold."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from report_runs import write_rows

from comborun.errors import UserError
from comborun.grid import parse_grid
from comborun.monitor.trial_setup import plan_anywhere
from comborun.remote.transport import LocalTransport
from comborun.reporter.pages.answer import answer
from comborun.reporter.planned_folder import collect_by_plan
from comborun.reporter.report import report_folder
from comborun.reporter.summary import Summary, summarize

RATES = {("act", "pick"): 5, ("act", "open"): 4, ("pi0", "pick"): 8, ("pi0", "open"): 7}
"""of ten episodes, how many succeed"""
EPISODES = 20
GRID = """
policies: [act, pi0]
environments: [pick, open]
episodes: 20
command: run {{output_dir}} {{episodes}}
resources: {{gpus: 1}}
results: {line}
"""
Row = dict[str, Any]
Written = Callable[[str, str, int, bool], Row]


def one_file(row: Written) -> dict[str, list[Row]]:
    return {"r.jsonl": rows_of(row, *RATES)}


def rows_of(row: Written, *combos: tuple[str, str]) -> list[Row]:
    return [row(*combo, at, at * 7 % 10 < RATES[combo]) for combo in combos for at in range(EPISODES)]


def in_folders(row: Written) -> dict[str, list[Row]]:
    return {f"{policy}/{env}.jsonl": rows_of(row, (policy, env)) for policy, env in RATES}


def by_policy(row: Written) -> dict[str, list[Row]]:
    return {f"{policy}.jsonl": rows_of(row, (policy, "pick"), (policy, "open")) for policy in ("act", "pi0")}


def said(folder: Path, out: Path) -> str:
    try:
        found = report_folder(folder, out).quality.findings
    except UserError as error:
        return f"{error} {error.hint}"
    return "\n".join(one.what for one in found)


def proposals(text: str) -> list[str]:
    return list(dict.fromkeys(re.findall(r"`results: (\{.*?\})`", text)))


def followed(folder: Path, line: str) -> Summary:
    plan = plan_anywhere(parse_grid(GRID.format(line=line), folder / "grid.yaml"), lambda _: LocalTransport())
    return summarize(collect_by_plan(folder, plan)).summary


@pytest.mark.parametrize(
    "files",
    [
        *(
            one_file(lambda p, e, at, ok, name=name: {name: p, "environment": e, "episode": at, "success": ok})
            for name in ("method", "algo", "variant", "level", "agent", "algorithm", "baseline", "model_id", "setup")
        ),
        *(
            one_file(lambda p, e, at, ok, name=name: {"policy": p, name: e, "episode": at, "success": ok})
            for name in ("level", "difficulty", "layout_name", "domain")
        ),
        one_file(lambda p, e, at, ok: {"model": p, "task": e, "episode": at, "success": ok}),
        one_file(lambda p, e, at, ok: {"method": p, "level": e, "episode": at, "success": ok}),
        by_policy(lambda p, e, at, ok: {"difficulty": e, "episode": at, "success": ok}),
        in_folders(lambda p, e, at, ok: {"ep": at, "won": ok}),
        in_folders(lambda p, e, at, ok: {"episode": at, "success": 100 * ok}),
        one_file(
            lambda p, e, at, ok: {"policy": p, "environment": e, "episode": at, "outcome": "won" if ok else "lost"}
        ),
    ],
    ids=lambda files: ",".join(f"{name}:{'+'.join(rows[0])}" for name, rows in [*files.items()][:1]),
)
def test_a_proposed_line_gives_the_report_of_what_the_rows_hold(files: dict[str, list[Row]], tmp_path: Path) -> None:
    for name, rows in files.items():
        write_rows(tmp_path / "in" / name, rows)
    lines = proposals(said(tmp_path / "in", tmp_path / "out"))
    assert len(lines) == 1
    found = followed(tmp_path / "in", lines[0])
    told = {one.key: (one.counts.successes, one.counts.completed) for one in found.combos if one.counts}
    assert told == {combo: (2 * rate, EPISODES) for combo, rate in RATES.items()}


ORDER = "Only paths say that these are policies."


@pytest.mark.parametrize("path", ["{policy}/{env}.jsonl", "{env}/{policy}.jsonl", "{env}/{policy}/results.jsonl"])
def test_the_first_line_says_that_only_the_order_of_names_tells_which_are_policies(path: str, tmp_path: Path) -> None:
    for policy, env in RATES:
        rows = rows_of(lambda _, __, at, ok: {"episode": at, "success": ok}, (policy, env))
        write_rows(tmp_path / "in" / path.format(policy=policy, env=env), rows)
    assert answer(report_folder(tmp_path / "in", tmp_path / "out")).endswith(ORDER)
    found = followed(tmp_path / "in", "{}")
    assert found.policies == ("act", "pi0")
    assert ORDER not in answer(found)


@pytest.mark.parametrize(
    ("path", "row"),
    [
        ("{policy}/{env}.jsonl", lambda p, e, at, ok: {"episode": at, "success": ok, "env": e}),
        ("{policy}/{env}.jsonl", lambda p, e, at, ok: {"episode": at, "success": ok, "policy": p}),
        ("policy={policy},env={env}/r.jsonl", lambda p, e, at, ok: {"episode": at, "success": ok}),
        ("{env}/{policy}.jsonl", lambda p, e, at, ok: {"episode": at, "success": ok, "model": p}),
        ("{policy}{env}.jsonl", lambda p, e, at, ok: {"episode": at, "success": ok, "policy": p, "environment": e}),
    ],
)
def test_where_a_column_or_a_key_tells_the_first_line_says_nothing_of_the_order(
    path: str, row: Written, tmp_path: Path
) -> None:
    for policy, env in RATES:
        write_rows(tmp_path / "in" / path.format(policy=policy, env=env), rows_of(row, (policy, env)))
    told = answer(report_folder(tmp_path / "in", tmp_path / "out"))
    assert told.startswith("pi0 beats act by")
    assert ORDER not in told
