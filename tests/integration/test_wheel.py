"""The wheel: what `uv tool install .` and `pipx install .` put on a laptop has to work without the checkout."""

from __future__ import annotations

import json
import runpy
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from box import until
from desk import CHECKOUT, Desk

LINKED = ("monitor", "remote", "reporter")
EACH = Path(__file__).with_name("as_mac") / "each.py"
PROJECT_URLS = CHECKOUT / "scripts/project_urls.py"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.Path:
    """The wheel of this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    built = subprocess.run(build, cwd=CHECKOUT, capture_output=True, text=True, timeout=100, check=False)
    assert built.returncode == 0, built.stderr
    (file,) = folder.glob("*.whl")
    return zipfile.Path(zipfile.ZipFile(file))


@pytest.fixture(scope="module")
def unpacked(wheel: zipfile.Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site packages")
    with zipfile.ZipFile(str(wheel.root.filename)) as whole:  # a Path adds folders, which Python 3.11.2 can't extract
        whole.extractall(folder)
    return folder


@pytest.fixture
def installed(desk: Desk, unpacked: Path) -> Desk:
    """A desk that has the wheel, and not the checkout."""
    desk.environment["PYTHONPATH"] = str(unpacked)
    return desk


def held(wheel: zipfile.Path) -> set[str]:
    return {name for name in wheel.root.namelist() if ".dist-info/" not in name and name[-1] != "/"}


def shipped() -> set[str]:
    """What the packages consist of, under the names that it has in a wheel."""
    package = CHECKOUT / "comborun"
    folders = (package, *(package / name for name in LINKED))
    files = {path for folder in folders for path in folder.rglob("*") if path.is_file()}
    return {path.relative_to(CHECKOUT).as_posix() for path in files if path.parent.name != "__pycache__"}


def test_it_holds_the_packages_the_documents_the_example_and_nothing_else(wheel: zipfile.Path) -> None:
    carried = {name for name in held(wheel) if name.startswith("comborun/shared/")}
    assert held(wheel) - carried == shipped()
    assert {"comborun/shared/docs/grid.md", "comborun/shared/example/checkpoints/flat.npz"} <= carried
    assert {name.split("/")[2] for name in carried} == {"docs", "example"}


def test_its_programs_are_combo_and_combo_monitor(wheel: zipfile.Path) -> None:
    (entries,) = (name for name in wheel.root.namelist() if name.endswith("/entry_points.txt"))
    programs = [line.partition(" ")[0] for line in wheel.root.read(entries).decode().splitlines() if "=" in line]
    assert programs == ["combo", "combo-monitor"]


def test_the_commands_work_where_there_is_no_checkout(installed: Desk) -> None:
    assert "combo run grid.yaml" in installed.combo("--help").stdout
    planned = installed.combo("plan", installed.grid(), code=0)
    assert "4 sessions, 16 episodes" in planned.stdout
    assert '"$schema"' in installed.combo("schema").stdout
    assert "most sessions at once" in installed.combo("docs", "limits.parallel").stdout
    assert installed.combo("init", "--example", str(installed.home / "walker")).returncode == 0
    assert "8 combos" in installed.combo("check", str(installed.home / "walker/grid.yaml")).stdout
    assert "../.venv" not in (installed.home / "walker/grid.yaml").read_text()
    look = "from comborun.remote import library as l; from comborun.remote.ssh import shell as s; "
    look += "print(len(s.program()), len(l.library_files()))"
    seen = subprocess.run(
        [sys.executable, "-c", look],
        env=installed.environment,
        cwd=installed.home,
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    assert all(int(number) > 20 for number in seen.stdout.split())


def test_a_grid_goes_to_its_report_where_there_is_no_checkout(installed: Desk) -> None:
    installed.combo("run", installed.grid(), code=0)
    assert installed.report()["totals"]["completed"] == 16
    assert (installed.runs[-1] / "report/report.html").stat().st_size > 10_000


_GONE = """
import sys


class Gone:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"numpy", "scipy", "matplotlib"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Gone())
"""


def each(desk: Desk, *lines: str) -> list[int]:
    """The exit codes of commands, whose output is in files N.out and N.err at home."""
    words = [sys.executable, str(EACH), str(desk.home), *lines]
    done = subprocess.run(words, env=desk.environment, cwd=desk.home, capture_output=True, text=True, check=True)
    print([path.read_text() for path in sorted(desk.home.glob("*.err"))])
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def test_the_launcher_works_without_what_a_report_needs_and_a_report_says_how_to_get_it(desk: Desk) -> None:
    (desk.home / "sitecustomize.py").write_text(_GONE)
    desk.environment["PYTHONPATH"] = f"{desk.home}:{CHECKOUT}"
    desk.grid(environments="[maze]")
    assert each(desk, "check grid.yaml", "plan grid.yaml", "launch grid.yaml --smoke 1") == [0, 0, 0]
    until((desk.runs[-1] / "dispatch/done").exists, "the run has ended")
    calls = "status", "runs", "resume", "explain maze_good", "logs maze_good", "stop", "report"
    assert each(desk, *calls) == [0, 0, 0, 0, 0, 0, 2]
    assert (desk.home / "6.out").read_text() == ""
    assert "comborun[report]" in (desk.home / "6.err").read_text()


TOKEN = "https://user:token@example.org/lab/comborun.git"
REMOTES = {
    TOKEN: "https://example.org/lab/comborun",
    "http://example.org:3000/lab/comborun.git": "http://example.org:3000/lab/comborun",
    "git@example.org:lab/comborun.git": "https://example.org/lab/comborun",
    "ssh://git@example.org:2222/lab/comborun": "https://example.org/lab/comborun",
    "/srv/git/comborun.git": None,
    "git@my-alias:comborun.git": None,
}
"""the address of a remote -> the home page"""


def test_the_address_of_a_remote_leads_to_its_pages() -> None:
    of = runpy.run_path(str(PROJECT_URLS))["project_urls"]
    urls = {remote: of(remote) for remote in REMOTES}
    assert {remote: one.get("Homepage") for remote, one in urls.items()} == REMOTES
    assert {remote: one.get("Issues") for remote, one in urls.items()} == {
        remote: f"{home}/issues" if home else None for remote, home in REMOTES.items()
    }


def test_its_urls_lead_to_where_the_checkout_was_cloned_from(tmp_path: Path) -> None:
    for name in ("pyproject.toml", "README.md", "LICENSE", "scripts/project_urls.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(CHECKOUT / name, tmp_path / name)
    for words in (["init", "-q"], ["remote", "add", "origin", TOKEN]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    ask = [sys.executable, "-m", "hatchling", "metadata"]
    answer = subprocess.run(ask, cwd=tmp_path, capture_output=True, text=True, timeout=100, check=True)
    assert json.loads(answer.stdout)["urls"]["Homepage"] == REMOTES[TOKEN]
