"""`combo try`: one episode of one combo, what counts of it, and the line of `results:` that would count the rest."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest
from desk import Desk

PROGRAM = """
import json, sys
from pathlib import Path

folder, count, name, rows, first = sys.argv[1], int(sys.argv[2]), sys.argv[3], json.loads(sys.argv[4]), int(sys.argv[5])
print("evaluating", count)
Path(folder).mkdir(parents=True, exist_ok=True)
lines = [json.dumps({"episode": index, "success": True, **rows}) for index in range(first, first + count)]
Path(folder, name).write_text("".join(f"{line}\\n" for line in lines))
"""


def program(desk: Desk, file: str = "r.jsonl", count: str = "{episodes}", rows: str = "{}", first: int = 0) -> str:
    path = desk.home / "program.py"
    path.write_text(PROGRAM)
    fixed = f"{shlex.join([sys.executable, str(path)])} {{output_dir}} {count} {file} "
    return fixed + shlex.quote(rows.replace("{", "{{")) + f" {first}"


def test_one_episode_of_the_combo_that_was_named_is_run_and_counted(desk: Desk) -> None:
    grid = desk.grid(command=program(desk))
    done = desk.combo("try", grid, "poor", "field", code=0)
    for told in (
        "| evaluating 1",
        "wrote r.jsonl",
        "poor in field: 1 of 1 episode counts: 1 with success",
    ):
        assert told in done.stdout
    assert "Next: " in done.stdout
    assert not desk.runs  # no run of the grid is made
    assert "Slurm" not in done.stderr
    assert "Slurm is not asked" in desk.combo("try", desk.grid(command=program(desk), slurm="{partition: main}")).stderr

    again = desk.json("try", grid, "--episodes", "3")
    assert (again["policy"], again["environment"], again["counted"]) == ("good", "maze", 3)
    assert [file["path"] for file in again["files"]] == ["r.jsonl"]
    assert Path(again["folder"], "out/r.jsonl").is_file()
    assert [path.name for path in (desk.home / "comborun/.try").glob("little*")] == [Path(again["folder"]).parts[-4]]


def test_a_file_that_the_pattern_does_not_take_comes_with_the_line_that_takes_it(desk: Desk) -> None:
    grid = desk.grid(command=program(desk, "r.ndjson"))
    found = desk.json("try", grid)
    assert found["counted"] == 0
    assert not found["counts"]
    assert 'r.ndjson: 1 episode, but the pattern takes **/*.jsonl: `results: {files: "**/*.ndjson"}`' in found["why"]

    checked = desk.combo("check", grid).stdout
    assert 'results: {files: "**/*.ndjson"}' in checked.splitlines()[-1]

    mended = desk.grid(command=program(desk, "r.ndjson"), results='{files: "**/*.ndjson"}')
    assert "1 of 1 episodes count" in desk.combo("check", mended).stdout  # without running anything
    assert desk.combo("try", mended).returncode == 0


def test_videos_that_the_grid_does_not_name_come_with_the_line_that_shows_them(desk: Desk) -> None:
    grid = desk.grid(command=program(desk))
    (desk.home / "program.py").write_text(f'{PROGRAM}Path(folder, "clip.mp4").write_text("x")\n')
    shown = desk.combo("try", grid, code=0).stdout
    assert "1 video (clip.mp4)" in shown
    assert 'results: {videos: "**/*.mp4"}' in shown
    assert 'results: {videos: "**/*.mp4"}' in desk.combo("check", grid).stdout
    assert [fact["code"] for fact in desk.json("try", grid)["facts"]] == ["videos_not_named"]


def test_a_line_that_is_proposed_keeps_what_the_grid_says_already(desk: Desk) -> None:
    results = '{files: "**/*.csv", metrics: [success]}'
    (desk.home / "table.py").write_text(
        "import sys; open(sys.argv[1] + '/r.csv', 'w').write('i,is_success\\n0,true\\n')"
    )
    command = f"{sys.executable} {shlex.quote(str(desk.home / 'table.py'))} {{output_dir}} {{episodes}}"
    said = desk.combo("try", desk.grid(command=command, results=results)).stdout
    assert '\n    results: {files: "**/*.csv", metrics: [success], episode: i, success: is_success}\n' in said


def test_where_a_line_would_count_more_the_reading_is_tried_again(desk: Desk) -> None:
    done = desk.combo("try", desk.grid(command=program(desk, count="4", first=1)))
    assert "3 of 4 episodes count" in done.stdout
    assert "{field: episode, from: 1}" in done.stdout
    assert (done.returncode, "Next: combo try" in done.stdout) == (1, True)


def test_a_command_that_names_one_policy_itself_is_no_matter_of_results(desk: Desk) -> None:
    grid = desk.grid(command=program(desk, rows='{"policy": "good"}'))
    done = desk.combo("try", grid, "poor", "maze", code=1)
    for said in (done.stdout, desk.combo("check", grid).stdout):
        assert "'good'" in said
        assert "policy: ignore" not in said
    assert done.stdout.splitlines()[-1].endswith("poor maze"), "the same combo is tried again"
    assert " ".join(done.stdout.split()).count("policy 'good'") == 1, "the reason is given once"

    elsewhere = desk.grid(command=program(desk, rows='{"policy": "checkpoint-7"}'))
    assert "policy: ignore" in desk.combo("try", elsewhere, "poor", "maze").stdout


def test_a_seed_of_another_name_is_named_where_the_rows_count(desk: Desk) -> None:
    said = desk.combo("try", desk.grid(command=program(desk, rows='{"env_seed": 107}'))).stdout
    assert "\n    results: {seed: env_seed}\n" in said


def test_a_program_that_cannot_be_told_to_do_fewer_does_all_and_one_that_writes_nothing_is_told_of(desk: Desk) -> None:
    assert desk.json("try", desk.grid(command=program(desk, count="4")))["counted"] == 4

    silent = desk.grid(command=f"{sys.executable} -c pass {{output_dir}} {{episodes}}")
    assert desk.json("try", silent)["why"].startswith("no file is below {output_dir}: have the program write")


@pytest.mark.parametrize("words", [["maze_poor"], ["poor"], ["poor", "maze"], ["maze", "poor"], ["poor", "in", "maze"]])
def test_a_combo_is_named_by_its_session_or_by_its_policy_and_environment(desk: Desk, words: list[str]) -> None:
    from comborun.grid import load_grid
    from comborun.monitor.trials import chosen

    (combo,) = chosen(load_grid(desk.grid()), words).combos
    assert (combo.policy.name, combo.environment.name) == ("poor", "maze")


def test_a_combo_that_is_not_there_comes_with_a_close_name(desk: Desk) -> None:
    done = desk.combo("try", desk.grid(), "por", "maze")
    assert done.returncode != 0
    assert "did you mean `poor`?" in done.stderr


@pytest.mark.parametrize("results", ["none", "{files: '*.jsonl'}"])
def test_a_training_is_shown_by_its_curves_and_by_what_proves_its_end(desk: Desk, results: str) -> None:
    printed = shlex.quote("echo step=100 reward=2.5; echo done")
    grid = desk.grid(command=f"bash -c {printed}", results=results, unit="step", evidence="{line: done}")
    shown = desk.combo("try", grid).stdout
    assert "a training, step 100: reward 2.5; its end is proven by a line of the log like 'done'" in shown
    assert ("give `results: none`" in shown) is (results != "none")
    assert "Episode" not in shown
    assert "count by this grid" not in desk.combo("check", grid).stdout


def test_a_trial_of_which_rows_are_dropped_as_repetitions_is_not_passed(desk: Desk) -> None:
    """Each task has a file and numbers its own episodes: the run would lose all but one."""
    path = desk.home / "tasks.sh"
    row = '{"episode": 0, "success": true}'
    path.write_text(f"""cd "$1"\nfor task in open close; do printf '{row}\\n' >$task.jsonl; done\n""")
    grid = desk.grid(command=f"bash '{path}' {{output_dir}} {{policy}} {{environment}} {{episodes}}")
    assert not desk.combo("try", grid, code=1).stdout.startswith("✓")
    found = desk.json("try", grid)
    assert (found["counted"], found["counts"]) == (1, False)
    assert "repeat" in found["why"]
