"""What people and programs see of a host's own findings, its clock, and the files of a grid that it looks at."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from comborun.answers import data_of
from comborun.cli.doctor import answer, lines
from comborun.grid import parse_grid
from comborun.remote.host import Examination, clock, wanted_by
from comborun.rules.facts import Fact
from comborun.rules.findings import Finding, Found, Level, error, fine, note, warning

CHECKOUT = Path(__file__).parents[3]
GOLDEN = CHECKOUT / "tests/golden/doctor"
ABOUT = {"hostname": "box", "os": "Ubuntu 24.04.1 LTS", "cpus": 32, "memory_kib": 128 << 20}
HEALTHY = (fine("bash", Found.BASH, version="5.2.15(1)-release"), fine("open files", Found.OPEN_FILES, most=65536))
SICK = (
    error("CRLF", Found.WINDOWS_LINE_ENDS, path="/home/ada/my eval.sh"),
    warning("tmux", Found.SERVER_WITHOUT_SOCKET, pid=4711),
    note("GPU 0", Found.NO_RAY_TRACING, gpu=0, name="NVIDIA H100 80GB HBM3"),
    *HEALTHY,
)


def examined(*findings: Finding) -> Examination:
    return Examination(findings, ABOUT)


@pytest.mark.parametrize(
    ("ahead", "slow", "level", "code"),
    [
        (0.0, 0.0, Level.OK, Found.CLOCK),
        (1.0, 0.0, Level.OK, Found.CLOCK),
        (-60.0, 0.0, Level.NOTE, Found.CLOCK),
        (3600.0, 0.0, Level.WARNING, Found.CLOCK_FAR_OFF),
        (4.0, 10.0, Level.OK, Found.CLOCK),
    ],
)
def test_a_clock_is_wrong_only_beyond_what_the_way_there_and_back_can_hide(
    ahead: float, slow: float, level: Level, code: Found
) -> None:
    """The host looked at its clock at 1000.5 and 1001.0."""
    finding = clock(1000.4 - ahead - slow / 2, 1000.5, 1001.0, 1001.1 - ahead + slow / 2)
    assert (finding.level, finding.fact.code) == (level, code)
    assert finding.fact.fields == {"off_s": ahead, "doubt_s": 0.1 + slow / 2}


def picture(findings: tuple[Finding, ...], width: int) -> str:
    return "".join(f"{line.plain}\n" for line in lines("gpubox", examined(*findings), width))


@pytest.mark.parametrize(
    ("name", "findings", "width"),
    [("healthy-80", HEALTHY, 80), ("sick-80", SICK, 80), ("sick-10000", SICK, 10_000), ("sick-40", SICK, 40)],
)
def test_the_picture_is_the_golden_one(name: str, findings: tuple[Finding, ...], width: int) -> None:
    golden = GOLDEN / f"{name}.txt"
    if os.environ.get("COMBORUN_WRITE_GOLDEN"):
        golden.write_text(picture(findings, width))
    assert golden.is_file(), f"{golden} is missing; it should hold:\n{picture(findings, width)}"
    assert picture(findings, width) == golden.read_text()


def test_a_code_of_another_version_is_shown_as_itself_and_what_another_program_said_controls_no_terminal() -> None:
    later = Finding("tmux", Level.ERROR, Fact("of_next_year", said="\x1b[2Jno\r"))
    assert "✗ tmux  of_next_year (said no)" in picture((later,), 80)


def test_the_document_holds_findings_and_what_the_host_is() -> None:
    told = data_of(answer("gpubox", examined(*SICK[1:])))
    assert (told["host"], told["healthy"], told["about"]) == ("gpubox", True, ABOUT)
    findings = told["findings"]
    assert findings[0]["check"] == "tmux"
    assert set(findings[0]) == {"check", "level", "found", "cost", "fix", "fact"}
    assert findings[0]["fact"] == {"code": "tmux_socket_gone", "pid": 4711}


def test_every_check_stands_in_the_documentation_and_nothing_else_does() -> None:
    page = (CHECKOUT / "docs/doctor.md").read_text()
    documented = set(re.findall(r"^- `([^`]+)`:", page, re.MULTILINE))
    sources = "".join(path.read_text() for path in (CHECKOUT / "comborun/host/doctor").glob("*.py"))
    found = set(re.findall(r"\b(?:error|warning|note|fine|Finding)\(\s*\"([A-Za-z -]+)\"", sources))
    assert documented == found | {"GPU N", "clock"}


GRID = """\
name: g
host: gpubox
policies: [a]
environments: [b]
workdir: ~/work
setup: |
  source ~/env/activate.sh  # not "quoted
  source "$HOME/other.sh"
command: bash run.sh --config {policy}.sh /opt/eval.py --flag=x.sh ./deep/er.bash
after: python report.py
"""


def test_the_scripts_that_a_grid_names_are_found_on_the_host() -> None:
    grid = parse_grid(GRID, Path("/laptop/grid.yaml"))
    assert set(wanted_by(grid, local=False).files) == {
        "~/work/run.sh",
        "~/work/a.sh",
        "~/work/x.sh",
        "/opt/eval.py",
        "~/work/deep/er.bash",
        "~/env/activate.sh",
        "~/work/report.py",
    }
    # a relative workdir is beside the grid on this machine, and unknown elsewhere
    grid = parse_grid(GRID.replace("~/work", "here"), Path("/laptop/grid.yaml"))
    assert "/laptop/here/run.sh" in wanted_by(grid, local=True).files
    assert set(wanted_by(grid, local=False).files) == {"/opt/eval.py", "~/env/activate.sh"}
