"""Files, links, ranks and policies that are files, in real sessions."""

from __future__ import annotations

import json
import shlex
import sys

from box import until
from desk import CHECKOUT, Desk

from comborun.rules.records import parse
from comborun.words.endings import said

PROGRAM = """
import json, os, pathlib, sys
job = json.loads(pathlib.Path(sys.argv[1]).read_text())
rank, each = int(os.environ["RANK"]), int(sys.argv[2])
assert pathlib.Path("config/a.yaml").is_file() and pathlib.Path(".hidden").is_file(), "not in the repository"
if rank == 0:
    assert not pathlib.Path("data").exists(), "another session's data"
    os.symlink("config", "data")
print(f"rank {rank} of {os.environ['WORLD_SIZE']}", flush=True)
print("words of", rank, file=sys.stderr, flush=True)
with open(pathlib.Path(os.environ["COMBORUN_OUTPUT_DIR"]) / f"a_rank{rank}.jsonl", "w") as file:
    for index in range(rank * each, rank * each + each):
        file.write(json.dumps({"episode": index, "success": True, **job}) + "\\n")
if job["policy"] == "bad" and rank == 1:
    sys.exit(3)
"""


def furnish(desk: Desk) -> None:
    """A repository, and a launcher of ranks where no torch is installed."""
    repository, torch = desk.home / "repository", desk.home / "lib" / "torch" / "distributed"
    for folder in (repository / "config", repository / "data", torch):
        folder.mkdir(parents=True)
    for file in ("config/a.yaml", ".hidden", "old.jsonl"):
        (repository / file).write_text('{"episode": 7, "success": true}\n')
    (repository / "program.py").write_text(PROGRAM)
    (torch / "run.py").symlink_to(CHECKOUT / "tests" / "replicas" / "torch_run.py")


def test_ranks_work_in_a_folder_of_links_on_files_of_their_own(desk: Desk) -> None:
    furnish(desk)
    grid = desk.home / "grid.yaml"
    grid.write_text(
        f"""\
policies: [good, bad]
environments: [maze]
episodes: 6
launcher: {{processes: 2}}
setup: export PYTHONPATH=~/lib
workdir: {{link_from: ~/repository, exclude: data}}
files: {{job.json: {{policy: "{{policy}}", planned: "{{episodes}}", at: ~/x}}}}
command: >-
  {shlex.quote(sys.executable)} program.py {{file.job.json}} {{episodes_per_rank}}
retry: none
"""
    )
    assert desk.combo("launch", grid).returncode == 0
    run = desk.runs[-1]
    until((run / "dispatch/done").exists, "the run has ended", 60)
    good, bad = (run / f"sessions/maze_{name}/attempt-1" for name in ("good", "bad"))
    assert parse((bad / "end").read_text())["code"] == "1"
    end = parse((good / "end").read_text())
    assert (end["completeness"], end["records"], end["code"]) == ("complete", "6", "0")
    rows = [json.loads(line) for path in sorted(good.glob("out/*.jsonl")) for line in path.read_text().splitlines()]
    assert [row["episode"] for row in rows] == [*range(6)]
    assert rows[0] | {"episode": 0} == {
        "episode": 0, "success": True, "policy": "good", "planned": 6, "at": f"{desk.home}/x",
    }  # fmt: skip
    work = good / "out/work"
    assert {path.name for path in work.iterdir()} == {".hidden", "config", "data", "program.py"}  # no old.jsonl
    assert (work / "config").readlink() == desk.home / "repository/config"
    assert (desk.home / "repository/data").is_dir()
    told = desk.combo("logs", "--rank", "1", "maze_good")
    assert told.stdout == "rank 1 of 2\n"
    assert desk.combo("logs", "--rank", "0", "--stderr", "maze_good").stdout == "words of 0\n"
    assert "there are 0, 1" in desk.combo("logs", "--rank", "2", "maze_good").stderr


def test_a_folder_of_links_to_nothing_is_a_failed_launch(desk: Desk) -> None:
    grid = desk.grid(policies="[a]", environments="[b]", workdir="{link_from: ~/nowhere}", retry="none")
    assert desk.combo("launch", grid, "--force").returncode == 1
    path = desk.runs[-1] / "sessions/b_a/attempt-1/end"
    until(path.exists, "it has ended")
    end = parse(path.read_text())
    assert (end["cause"], said(end)) == ("launch_failed", f"there is no folder {desk.home}/nowhere")


def test_a_run_keeps_the_policies_that_it_was_planned_with(desk: Desk) -> None:
    folder = desk.home / "ckpt"
    folder.mkdir()
    glob = "{glob: ~/ckpt/*.pt, exclude: '*_last.pt'}"
    grid = desk.grid(policies=glob, environments="[maze]")
    refused = desk.combo("plan", grid)
    assert (refused.returncode, "grid.yaml:2:18" in refused.stderr) == (2, True), refused.stderr
    for name in ("step_9.pt", "step_10.pt", "step_10_last.pt"):
        (folder / name).touch()
    (folder / "broken.pt").symlink_to("nowhere")
    assert [one["policy"] for one in desk.json("plan", grid)["sessions"]] == ["step_9", "step_10"]
    assert desk.json("launch", grid)["state"] == "new"
    run = desk.runs[-1]
    until((run / "dispatch/done").exists, "the run has ended", 60)
    (folder / "step_11.pt").touch()
    (folder / "step_9.pt").unlink()
    again = desk.json("launch", grid)
    assert (again["run"], again["state"], len(again["sessions"])) == (run.name, "finished", 2)
    assert "1 more, 1 of them gone" in again["changes"][0]
    assert not (run / "plan-2.json").exists()
    taken = desk.json("launch", grid, "--changed", "rerun")
    assert taken["sessions"] == ["maze_step_10", "maze_step_11"]
    assert (taken["run"], (run / "plan-2.json").exists()) == (run.name, True)
