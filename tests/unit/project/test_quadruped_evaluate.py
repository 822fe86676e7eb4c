"""The example as its users run it: `python evaluate.py ...` in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

if not find_spec("mujoco") or not find_spec("PIL"):
    pytest.skip("the example's simulator, or Pillow, is not installed", allow_module_level=True)

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "quadruped"

# A background job starts with SIGINT ignored and would pass that on: give the program what a terminal would.
AS_FROM_A_TERMINAL = (
    "import runpy, signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler);"
    "sys.argv.pop(0); runpy.run_path(sys.argv[0], run_name='__main__')"
)


def evaluate(
    output: Path, *arguments: str, policy: str = "flat", env: str = "boulder", **variables: str
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "evaluate.py", "--policy", policy, "--env", env, "--output-dir", str(output)]
    return subprocess.run(
        [*command, *arguments],
        cwd=EXAMPLE,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def records(output: Path) -> list[dict]:
    return [json.loads(line) for line in (output / "episodes.jsonl").read_text().splitlines()]


def test_two_episodes_give_two_lines_and_two_records(tmp_path):
    done = evaluate(tmp_path / "new" / "out", "--episodes", "2", "--first-episode", "5", "--seed", "1000")

    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split()[:4] for line in done.stdout.splitlines()] == [
        ["episode", "5", "seed", "1005"],
        ["episode", "6", "seed", "1006"],
    ]
    first, second = records(tmp_path / "new" / "out")
    assert list(first) == [
        *("policy", "environment", "level", "episode", "seed", "success", "termination"),
        *("distance_m", "time_s", "steps", "energy_j", "initial_state"),
    ]
    assert (second["policy"], second["environment"]) == ("flat", "boulder")
    assert (second["level"], second["episode"], second["seed"]) == (1.0, 6, 1006)
    for episode in (first, second):
        assert episode["success"] is (episode["termination"] == "goal")
        assert episode["time_s"] == pytest.approx(episode["steps"] * 0.02)
        assert len(episode["initial_state"]) == 12


def test_episodes_run_alone_give_the_bytes_of_a_longer_range(tmp_path):
    env, whole, part = "grass", tmp_path / "whole", tmp_path / "part"
    evaluate(whole, "--episodes", "3", "--seed", "40", env=env)
    evaluate(part, "--episodes", "1", "--first-episode", "2", "--seed", "40", env=env)
    evaluate(part, "--episodes", "1", "--first-episode", "1", "--seed", "40", env=env)

    lines = (whole / "episodes.jsonl").read_bytes().splitlines()
    assert len(lines) == 3
    assert (part / "episodes.jsonl").read_bytes().splitlines() == [lines[2], lines[1]]


def test_an_interrupt_ends_the_program_with_every_finished_episode_on_disk(tmp_path):
    arguments = ["evaluate.py", "--policy", "flat", "--env", "boulder", "--episodes", "5000"]
    process = subprocess.Popen(
        [sys.executable, "-c", AS_FROM_A_TERMINAL, *arguments, "--output-dir", str(tmp_path)],
        cwd=EXAMPLE,
        env={name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        announced = [process.stdout.readline() for _ in range(3)]
        on_disk = len(records(tmp_path))
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=30)
    finally:
        process.kill()
        process.wait()

    assert process.returncode == 130
    assert errors == "evaluate.py: interrupted; finished episodes are recorded\n"
    assert all(line.startswith("episode") for line in announced)
    # A record is on disk before its line is printed, and no buffer holds back a hundred lines.
    assert 3 <= on_disk < 60
    kept = records(tmp_path)
    assert [record["episode"] for record in kept] == list(range(len(kept)))
    assert 3 + len(rest.splitlines()) <= len(kept) < 5000


EACH = """
import contextlib, io, json, sys
import evaluate
sys.argv[0], told = "evaluate.py", []
for words in json.load(sys.stdin):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = evaluate.main(words)
        except SystemExit as ended:
            code = ended.code
    told.append((code, out.getvalue(), err.getvalue()))
json.dump(told, sys.stdout)
"""
WRONG = {
    "--env swamp": (2, "argument --env: invalid choice: 'swamp'"),
    "--episodes -3": (2, "argument --episodes: expected"),
    "--level 0": (2, "argument --level: expected a number from 0.1 to 3, got '0'"),
    "--policy hover": (1, "no checkpoint at"),
    "--checkpoint text.npz": (1, "is not an intact .npz file"),
}
"""options -> the exit code, and what is said"""


def test_what_is_wrong_with_a_command_line_or_a_checkpoint_is_one_line(tmp_path):
    (tmp_path / "text.npz").write_text("not a checkpoint")
    usual = ["--policy", "flat", "--env", "boulder", "--output-dir", str(tmp_path / "out")]
    lines = json.dumps([[*usual, *options.split()] for options in WRONG])
    done = subprocess.run(
        [sys.executable, "-c", EACH],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(EXAMPLE)},
        input=lines,
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    for (code, complaint), (ended, out, err) in zip(WRONG.values(), json.loads(done.stdout), strict=True):
        assert (ended, out) == (code, "")
        assert err.startswith(f"evaluate.py: error: {complaint if code == 2 else ''}")
        assert complaint in err
        assert err.count("\n") == 1
    assert not (tmp_path / "out").exists(), "nothing is written before the checkpoint is known to be good"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_one_line_and_code_1(tmp_path):
    (tmp_path / "episodes.jsonl").symlink_to("/dev/full")

    done = evaluate(tmp_path, "--episodes", "3")

    assert (done.returncode, done.stdout) == (1, "")
    assert "No space left on device" in done.stderr
    assert done.stderr.count("\n") == 1


def test_of_chosen_episodes_the_side_view_is_drawn_where_there_is_no_video_encoder(tmp_path):
    (tmp_path / "av.py").write_text("raise ImportError('hidden by the test')")
    out = tmp_path / "out"
    done = evaluate(out, "--episodes", "3", "--render", "1", "7", "--render-as", "mp4", PYTHONPATH=str(tmp_path))

    assert done.returncode == 0
    assert done.stderr == "evaluate.py: PyAV is not installed (pip install av); drawing side views instead\n"
    assert sorted(path.name for path in out.iterdir()) == ["boulder_flat_1.gif", "episodes.jsonl"]
    assert (out / "boulder_flat_1.gif").read_bytes().startswith(b"GIF89a")
