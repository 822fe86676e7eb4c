"""The same results whatever the number of shards, on the example; and nothing runs again for another number."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

from box import until
from desk import Desk, evaluate

EXAMPLE = Path(__file__).parents[2] / "examples" / "quadruped"


def grid(desk: Desk, name: str, **keys: str) -> Path:
    command = (
        f"{shlex.quote(sys.executable)} evaluate.py --policy {{policy}} --env {{environment}} --episodes {{episodes}}"
        " --first-episode {first_episode} --seed {seed} --output-dir {output_dir}"
    )
    entries = {"policies": "[flat]", "environments": "[stairs]", "episodes": "4", "workdir": str(EXAMPLE)}
    path = desk.grid(f"{name}.yaml", command=command, **{**entries, **keys})
    path.write_text(path.read_text().replace("name: little", f"name: {name}"))
    return path


def told(desk: Desk, run: Path) -> tuple[list[Any], list[Any]]:
    """Every record by its episode, and what the report makes of the combos."""
    records = [json.loads(line) for lines in desk.records(run).values() for line in lines]
    report = desk.report(run)
    combos = report["combos"]
    assert not report["quality"]["findings"]
    for combo in combos:
        for key in ("attempts", "seconds", "peak_memory_kib"):  # of how it was run, not of the policy
            del combo[key]
    return sorted(records, key=lambda record: record["episode"]), combos


def test_the_results_are_the_same_whatever_the_number_of_shards(desk: Desk) -> None:
    runs = {}
    for name, shards in (("whole", "1"), ("cut", "3")):
        desk.combo("run", grid(desk, name, shards=shards), timeout=120, code=0)
        runs[name] = desk.runs[-1] if name == "whole" else next(run for run in desk.runs if run.name.startswith("cut"))
    assert len(list((runs["cut"] / "sessions").iterdir())) == 3
    records, _ = told(desk, runs["whole"])
    assert [record["episode"] for record in records] == list(range(4))
    assert told(desk, runs["cut"]) == told(desk, runs["whole"])

    again = desk.json("launch", grid(desk, "cut", shards="2"))
    assert again["state"] == "finished"
    before = {path.name for path in (runs["cut"] / "sessions").iterdir()}
    more = desk.json("launch", grid(desk, "cut", shards="2", episodes="6"))
    assert (more["run"], set(more["sessions"]) - before) == (runs["cut"].name, {"stairs_flat_e4-5"})


def test_a_program_with_a_seed_and_no_start_index_can_be_cut_and_goes_on_where_it_stopped(desk: Desk) -> None:
    command = evaluate(fail="half").replace("--first-episode {first_episode} --seed {seed}", "--seed {first_seed}")
    keys = {"policies": "[good]", "environments": "[maze]", "results": "{episode: line}", "command": command}
    assert desk.combo("run", desk.grid(**keys, episodes="8", shards="2")).returncode == 1
    (run,) = desk.runs
    assert sorted(json.loads(one)["seed"] for lines in desk.records(run).values() for one in lines) == [7, 8, 11, 12]

    desk.combo("resume")
    until(lambda: len(list(run.glob("sessions/*/attempt-2/end"))) == 2, "both shards have gone on", 30)
    assert sorted(json.loads(one)["seed"] for lines in desk.records(run).values() for one in lines) == [
        *(7, 8, 9),
        *(11, 12, 13),
    ]
    desk.combo("report")
    (combo,) = desk.report(run)["combos"]
    assert combo["missing_episodes"] == "3, 7"
