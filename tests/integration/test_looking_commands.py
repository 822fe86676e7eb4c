"""The commands that look at what is there, as a user types them: status, logs, attach and runs."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from box import until
from desk import ONE, Desk, desk_at, evaluate


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """A desk whose four sessions run."""
    with desk_at(tmp_path_factory.mktemp("running") / "a home") as there:
        there.environment["TMPDIR"] = str(tmp_path_factory.mktemp("scratch"))
        there.launched(4, command=evaluate(pace=300))
        yield there


def test_logs_shows_the_end_of_a_log_byte_for_byte(ended: Desk) -> None:
    assert ended.combo("logs", "maze_good", "-n", 2).stdout == "".join(
        (ended.runs[-1] / "sessions/maze_good/attempt-1/log").read_text().splitlines(keepends=True)[-2:]
    )
    missing = ended.combo("logs", "nothing", code=2)
    assert "there is no session nothing" in missing.stderr
    assert "--run little" in ended.combo("logs", "little").stderr, "a run is named by --run, and that is said"


def test_attach_names_the_exact_windows_and_opens_none_where_there_is_no_terminal(running: Desk) -> None:
    shown = running.combo("attach", "maze_good", "--show").stdout
    socket = running.environment["COMBORUN_TMUX_SOCKET"]
    assert shown == f"tmux -u -L {socket} attach-session -r -t =maze_good_{running.runs[-1].name[-4:]}\n"
    folder = Path(running.environment["TMPDIR"], f"comborun-{os.getuid()}")
    folder.mkdir(mode=0o755)  # where runs promise each other GPUs: all may read it
    shown = running.combo("attach", "--all", "--show")
    assert len(shown.stdout.splitlines()) == 4, shown.stderr
    assert "needs a terminal" in running.combo("attach", "--all").stderr
    refused = running.combo("attach", "maze_good")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "needs a terminal" in refused.stderr


def test_attach_all_opens_a_window_with_a_pane_for_every_session(running: Desk) -> None:
    terminal = ["tmux", "-L", f"{running.environment['COMBORUN_TMUX_SOCKET']}-user", "-f", "/dev/null"]
    inside = shlex.join(running.command("attach", "--all"))
    subprocess.run(
        [*terminal, "new-session", "-d", "-x", "160", "-y", "48", inside], env=running.environment, check=True
    )

    def titles() -> set[str]:
        asked = [*terminal, "list-panes", "-a", "-F", "#{window_name} #{pane_title}"]
        lines = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.splitlines()
        return {line.split()[-1] for line in lines if line.startswith("combo-")}

    try:
        until(lambda: titles() == {"maze_good", "field_good", "maze_poor", "field_poor"}, f"four panes: {titles()}")
    finally:
        subprocess.run([*terminal, "kill-server"], capture_output=True, check=False)
    assert {session["state"] for session in running.json("status")["sessions"]} == {"running"}


def test_attach_follows_the_log_of_what_still_runs_when_its_window_is_gone(desk: Desk) -> None:
    pending = f"sh -c 'echo hello; until [ -e ~/gate ]; do sleep 0.1; done; exec \"$@\"' x {evaluate()}"
    desk.launched(1, command=pending, policies="[good]", environments="[maze]")
    tmux = ["tmux", "-L", desk.environment["COMBORUN_TMUX_SOCKET"], "kill-server"]
    subprocess.run(tmux, env=desk.environment, check=True)
    following = desk.start("attach", "maze_good")
    until(lambda: following.text.count("\n") == 2, "it shows what there is")
    assert following.text == "the window of maze_good is gone, but it still runs: this follows its log\nhello\n"
    (desk.home / "gate").touch()
    assert following.code(30) == 0
    assert "episode 3" in following.text
    until((desk.runs[-1] / "sessions/maze_good/attempt-1/end").exists, "it has ended")
    over = desk.combo("attach", "maze_good")
    assert "maze_good has ended" in over.stderr
    assert (over.returncode, "episode 3" in over.stdout) == (0, True)


def test_a_window_of_screen_is_not_opened_without_asking(desk: Desk) -> None:
    gate = desk.home / "gate"
    desk.combo("launch", desk.grid(command=evaluate(gate=gate)), "--multiplexer", "screen")
    until((desk.runs[-1] / "sessions/maze_good/attempt-1/begin").exists, "it begins")
    assert desk.combo("attach", "maze_good", "--show").stdout.startswith("tail ")
    assert " screen -U -x " in f" {desk.combo('attach', 'maze_good', '--write', '--show').stdout}"
    following = desk.start("attach", "maze_good")
    until(lambda: "no read-only view" in following.text, "it says what it does")
    gate.touch()
    assert following.code(30) == 0
    followed = [line for line in following.text.splitlines() if line.startswith("episode ")]
    assert [line.split(":")[0] for line in followed] == [f"episode {i}" for i in range(4)]


def test_signs_and_host_text_are_safe_on_every_terminal(desk: Desk) -> None:
    desk.environment |= {"PYTHONIOENCODING": "ascii", "LANG": "C"}
    assert "Traceback" not in desk.combo("doctor").stderr
    evil = desk.combo("status", "no\x1b]0;owned\x07run")
    assert "\x1b" not in evil.stderr


def test_logs_waits_for_a_session_that_is_queued_and_shows_it_from_its_first_line(desk: Desk) -> None:
    gate = desk.home / "gate"
    desk.launched(1, command=evaluate(gate=gate), limits="{parallel: 1}", policies="[good]")
    following = desk.start("logs", "-f", "field", "good")
    until(lambda: "\n" in following.text, "it says that it waits")
    gate.touch()
    assert following.code(30) == 0
    said, *shown = following.text.splitlines()
    assert said.startswith("field_good has not started yet")
    assert [line.split(":")[0] for line in shown] == [f"episode {number}" for number in range(4)]


def test_logs_without_a_session_follow_all_of_them_each_line_with_its_session(ended: Desk) -> None:
    shown = ended.combo("logs", "-f", "-n", 1).stdout.splitlines()
    assert {line.split()[0] for line in shown} == {"maze_good", "field_good", "maze_poor", "field_poor"}
    assert all("episode 3" in line for line in shown)


def test_a_shell_completes_commands_runs_and_sessions(ended: Desk) -> None:
    def offered(*words: str) -> set[str]:
        asked = {"_COMBO_COMPLETE": "bash_complete", "COMP_WORDS": shlex.join(words), "COMP_CWORD": str(len(words) - 1)}
        combo = str(Path(sys.executable).with_name("combo"))
        done = subprocess.run(
            [combo], env=ended.environment | asked, capture_output=True, text=True, check=False, cwd=ended.home
        )
        return {line.partition(",")[2] for line in done.stdout.splitlines()}

    assert "status" in offered("combo", "sta")
    assert offered("combo", "logs", "maze") == {"maze_good", "maze_poor"}
    assert offered("combo", "status", "lit") == {ended.runs[-1].name}
    assert "_COMBO_COMPLETE" in ended.combo("completion", "zsh").stdout


def test_the_cause_of_a_failure_is_shown_and_not_that_nothing_was_written(desk: Desk) -> None:
    command = "bash -c 'echo no such flag; exit 2' {output_dir} {policy} {episodes}"
    grid = desk.grid(command=command, **ONE)
    assert desk.combo("run", grid, "--set", "retry=none").returncode == 1
    shown = desk.combo("status").stdout
    assert "exit code 2" in shown
    assert "no file is below" not in shown
    (run,) = desk.runs
    said = [finding["what"] for finding in desk.report(run)["quality"]["findings"]]
    assert any("exit code 2" in one for one in said)
    assert not any("no file is below" in one for one in said)


def test_an_option_that_is_a_key_of_the_grid_is_answered_with_how_to_give_it(desk: Desk) -> None:
    refused = desk.combo("launch", "--root", "~/elsewhere", desk.grid(), code=2)
    assert "--set root=" in refused.stderr
    assert "--host" not in refused.stderr


def test_files_that_are_not_read_are_no_matter_where_the_program_crashed(desk: Desk) -> None:
    asked = []
    for end in ("true", "kill -SEGV $$"):
        command = f"""bash -c 'echo 1 >"$0/a.txt"; {end}' {{output_dir}} {{session}} {{episodes}}"""
        grid = desk.grid(command=command, retry="none", **ONE)
        asked.append("Correct `results`" in desk.combo("run", grid).stderr)
    assert asked == [True, False]


@pytest.mark.parametrize("closed", [">&-", "<&- >&- 2>&-"])
def test_a_command_works_where_its_caller_has_closed_its_streams(ended: Desk, closed: str) -> None:
    command = f"{shlex.join(ended.command('runs'))} {closed}"
    seen = {"env": ended.environment, "cwd": ended.home, "capture_output": True, "text": True, "timeout": 60}
    done = subprocess.run(["bash", "-c", command], check=False, **seen)
    assert (done.returncode, done.stderr) == (0, "")
