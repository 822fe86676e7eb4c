"""`container: {runtime: podman}` with the real podman, whose containers live in a mount namespace of the test."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from desk import Desk

OPTIONS = "--cgroups=disabled --ulimit=nofile=1024:1024 --ulimit=nproc=1000:1000"
"""for machines where this user may raise no limit, or where control groups are of two versions"""
IMAGE = "comborun-test"
PREPARE = f"""
set -eu
mount --make-rprivate /
umount -R /sys/fs/cgroup
mount -t cgroup2 none /sys/fs/cgroup
podman run --rm --init --network=host {OPTIONS} {IMAGE} bash -c true
touch prepared
"""
PROGRAM = """
echo "I am $(id -u)"
for i in 0 1; do echo "{\\"episode\\": $i, \\"success\\": true}"; done >"$2"/r.jsonl
case $1 in bad) exit 3 ;; stays) sleep 1000 ;; esac
"""


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An image with bash and little else, made of this machine's files: no registry is asked."""
    if os.getuid() or not shutil.which("podman"):
        pytest.skip("needs root and podman")
    folder = tmp_path_factory.mktemp("image")
    for name in ("bash", "id", "sleep"):
        program = shutil.which(name, path="/usr/bin:/bin") or pytest.fail(f"no {name}")
        told = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
        libraries = [word for word in told.split() if word.startswith("/")]
        for path in (program, *libraries):
            place = folder / "root" / path.lstrip("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(Path(path).resolve(), place)
    (folder / "Containerfile").write_text("FROM scratch\nCOPY root /\nENV PATH=/usr/bin:/bin\n")
    built = subprocess.run(["podman", "build", "-q", "-t", IMAGE, folder], capture_output=True, text=True, check=False)
    if built.returncode:
        pytest.skip(f"podman builds nothing here: {built.stderr}")
    return IMAGE


def inside(desk: Desk, commands: str) -> str:
    """What commands print that run where podman works."""
    combo = shlex.join(desk.command())
    script = desk.home / "inside.sh"
    script.write_text(f'{PREPARE}\ncombo() {{ {combo} "$@"; }}\n{commands}')
    words = ["unshare", "--mount", "bash", str(script)]
    done = subprocess.run(
        words, cwd=desk.home, env=desk.environment, capture_output=True, text=True, timeout=120, check=False
    )
    if not (desk.home / "prepared").exists():
        pytest.skip(f"podman starts nothing here: {done.stderr}")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def grid(desk: Desk, image: str, policies: str) -> None:
    (desk.home / "grid.yaml").write_text(
        f"""\
policies: {policies}
environments: [maze]
episodes: 2
container: {{image: {image}, runtime: podman, options: {OPTIONS}}}
command: bash {{file.program.sh}} {{policy}} {{output_dir}}
files: {{program.sh: {json.dumps(PROGRAM.replace("{", "{{").replace("}", "}}"))}}}
retry: none
poll: 0.3
"""
    )


def test_sessions_run_in_containers_and_end_with_the_codes_of_their_programs(desk: Desk, image: str) -> None:
    grid(desk, image, "[good, bad]")
    inside(desk, "combo run grid.yaml >told 2>&1; combo status --json >status.json")
    sessions = {one["policy"]: one for one in json.loads((desk.home / "status.json").read_text())["sessions"]}
    assert {name: one["outcome"] for name, one in sessions.items()} == {"good": "succeeded", "bad": "succeeded"}
    end = (desk.runs[-1] / "sessions/maze_bad/attempt-1/end").read_text()
    assert json.loads(end)["code"] in (3, "3")
    assert "I am 0" in (desk.runs[-1] / "sessions/maze_good/attempt-1/log").read_text()


def test_stop_ends_a_container(desk: Desk, image: str) -> None:
    grid(desk, image, "[stays]")
    wait = "until compgen -G 'comborun/*/sessions/maze_stays/attempt-1/out/r.jsonl' >/dev/null; do sleep 0.1; done"
    listed = "podman ps -aq --filter label=comborun"
    told = inside(desk, f"combo launch grid.yaml >&2; {wait}; {listed} | wc -l; combo stop >&2; {listed} | wc -l")
    assert told.split() == ["1", "0"]
