"""`sync`, `replaces` and `secrets` on another host, over a real sshd, with both transports."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

from box import until
from desk import Desk
from sshd import Sshd
from test_host_flow import far, far_host, far_runs

__all__ = ["far", "far_host"]

SCRIPT = """#!/bin/bash\r
printf '{"episode": 0, "success": true}\\n' >"$1/records.jsonl"\r
printf '%s|%s' "$HERE" "$THERE" | sha256sum >~/seen\r
"""
GRID = """\
host: testbox
policies: [good]
environments: [maze]
episodes: 1
command: ./run.sh {output_dir}
workdir: ~/deployed code
sync: [{from: project, to: ~/deployed code}]
replaces: [eval4env]
secrets: {HERE: laptop, THERE: host}
"""


def as_user(far_host: Sshd, *command: str) -> str:
    environment = {"HOME": str(far_host.user.home), "PATH": os.environ["PATH"], "TERM": "dumb"}
    words = ["runuser", "-u", far_host.user.name, "--", *command]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False, cwd="/")
    return done.stdout


def test_all_of_it_works_on_a_host(far: Desk, far_host: Sshd) -> None:
    project = far.home / "project"
    project.mkdir()
    (project / "run.sh").write_bytes(SCRIPT.encode())
    (project / "run.sh").chmod(0o755)
    (project / "weights").write_bytes(os.urandom(300_000))
    (far.home / "grid.yaml").write_text(GRID)
    far.environment["HERE"] = "from\nthe laptop"
    missing = far.combo("launch", "grid.yaml")
    assert (missing.returncode, "missing on testbox: THERE" in missing.stderr) == (3, True), missing.stderr
    with (far_host.user.home / ".bash_profile").open("a") as profile:
        profile.write(f"export THERE={shlex.quote('from the profile')}\n")
    as_user(far_host, "tmux", "-L", "default", "new-session", "-d", "-s", "eval4env", "sleep 600")
    record = far.json("launch", "grid.yaml")
    (run,) = far_runs(far_host)
    until((run / "dispatch/done").exists, "the run is done")
    done = (run / "dispatch/done").read_text()
    assert '"succeeded": 1' in done, (run / "sessions/maze_good/attempt-1/log").read_text()
    assert record["shipped"][0] == "project -> ~/deployed code: 2 files, 2 sent, 293 KiB"
    assert record["replaced"][0].endswith("has ended after INT")
    assert as_user(far_host, "tmux", "-L", "default", "list-sessions") == ""
    wanted = subprocess.run(["sha256sum"], input=b"from\nthe laptop|from the profile", capture_output=True, check=True)
    assert (far_host.user.home / "seen").read_bytes() == wanted.stdout
    assert not (run / "dispatch/secrets").exists()
    again = far.json("launch", "grid.yaml", "--new")
    assert again["shipped"][0].endswith("nothing had changed")
    assert Path(far_host.user.home / "deployed code/run.sh").owner() == far_host.user.name
