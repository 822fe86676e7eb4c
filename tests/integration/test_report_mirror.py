"""The report of a run on a host, made on a laptop: the same as on the host itself, and not lost with the link."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from box import put_library
from recorded import queue_rows, record
from report_runs import RUN, RunDirectory, row

from comborun.api.named import Target
from comborun.api.reports import ReportRequest, bring_videos, make_report
from comborun.cli.options import Shown
from comborun.cli.status import watch_until_the_end
from comborun.cli.terminal import INTERRUPTED, TERMINAL
from comborun.errors import HostError
from comborun.host.record.curves_file import keep
from comborun.remote.transport import Completed, LocalTransport
from comborun.reporter.summary import Summary
from comborun.rules.names import AttemptLayout
from comborun.rules.results.fields import ResultRules

ID = "grid-20260509T073525Z-1a2b"
LOST = ("broken", "round")
CUT = HostError("gpubox: the connection was lost", "the same command again continues")


class Laptop(LocalTransport):
    """The way to a host that is this machine under another name; `faults` come in place of the first fetches."""

    host = "gpubox"

    def __init__(self, *faults: BaseException) -> None:
        self.faults = list(faults)

    def run(self, script: str, *args: str, **options: Any) -> Completed:
        if "fetch" in args and self.faults:
            raise self.faults.pop(0)
        return super().run(script, *args, **options)


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the laptop keeps its mirrors."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "laptop"))
    return tmp_path / "laptop"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run that has ended, as it lies on the host: results behind links, behind broken ones, and empty ones."""
    run = RunDirectory(tmp_path / "host" / ID)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    files = ("*.jsonl", "sub/*.jsonl")
    for policy in ("flat", "rough"):
        session = run.session(policy, "stairs", 4, results=ResultRules(files=files))
        run.attempt(session, row(0) + row(1, False))
        attempt = RUN.attempt(session.name, 1)
        run.put(attempt.claim, f'{{"count": "4", "files": ["{files[0]}", "{files[1]}"]}}\n')
        output = run.path / attempt.output
        (scratch / f"{policy}.jsonl").write_text(row(2))
        (output / "linked.jsonl").symlink_to(scratch / f"{policy}.jsonl")
        (output / "broken.jsonl").symlink_to(scratch / "nowhere")
        (output / "round.jsonl").symlink_to("round.jsonl")
        (output / "empty.jsonl").touch()
        (scratch / policy).mkdir()
        (scratch / policy / "three.jsonl").write_text(row(3))
        (output / "sub").symlink_to(scratch / policy)
    training = run.session("ppo", "stairs", 400, unit="step")
    run.attempt(training)
    run.put(RUN.attempt(training.name, 1).log, "step=100 reward=1.5\nstep=200 reward=2.5\n")
    keep(AttemptLayout(str(run.path / RUN.attempt(training.name, 1).directory)))
    run.put(RUN.queue, queue_rows(stairs_flat="", stairs_rough="", stairs_ppo=""))
    run.put(RUN.policy, record(parallel=2))
    run.write(run=ID)
    put_library(run.path)
    return run.path


def target_of(transport: LocalTransport, run: Path) -> Target:
    return Target(transport, ID, str(run), listener=TERMINAL)


def report(transport: LocalTransport, run: Path, output: Path | None = None) -> tuple[Summary, Path]:
    target = target_of(transport, run)
    return make_report(target, target.bring(), ReportRequest(output))


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_linked_results_give_the_same_report_on_the_host_and_on_any_laptop(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    summary, here = report(LocalTransport(), run, tmp_path / "on the host")
    assert [one.curves[0].last for one in summary.trainings] == [2.5]
    assert (summary.totals.completed, summary.totals.missing, summary.quality.counts["files"]) == (8, 0, 10)
    reports = []
    for laptop in ("first", "second"):
        monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / laptop))
        reports.append(files(report(Laptop(), run)[1]))
    assert reports == [files(here)] * 2


def test_results_that_were_not_brought_are_named_in_the_report_and_a_few_on_the_terminal(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    summary, _ = report(Laptop(), run)
    broken = [f"sessions/stairs_{policy}/attempt-1/out/{leaf}.jsonl" for policy in ("flat", "rough") for leaf in LOST]
    found = [finding.where for finding in summary.quality.findings if "leads nowhere" in finding.what]
    assert found == broken
    told = capsys.readouterr().err.splitlines()
    lost = [line for line in told if line.startswith("not copied")]
    assert sorted(lost) == sorted(f"not copied: {path}: a link that leads nowhere" for path in broken)
    for number in range(20):
        (run / f"sessions/stairs_flat/attempt-1/out/{number}.jsonl").symlink_to("nowhere")
    report(Laptop(), run)
    *_, last = told = [line for line in capsys.readouterr().err.splitlines() if line.startswith(("not copied", "and "))]
    assert (len(told), last) == (6, "and 19 more: the report has all of them")


@pytest.mark.parametrize("as_json", [False, True])
def test_a_link_that_is_cut_while_results_are_fetched_costs_time_and_no_report(
    run: Path, data: Path, capsys: pytest.CaptureFixture[str], as_json: bool
) -> None:
    target = Target(Laptop(CUT, CUT), ID, str(run))
    assert watch_until_the_end(target, Shown(0.2, plain=True, as_json=as_json)) == 0
    assert (data / "comborun/gpubox" / ID / "report/report.html").is_file()
    said = capsys.readouterr()
    waiting = [line for line in said.err.splitlines() if "unreachable" in line]
    assert len(waiting) == 1
    assert waiting[0].endswith("(gpubox: the connection was lost); the report follows when the host answers")
    assert ("Report:" in said.out) is not as_json


def test_ctrl_c_while_the_report_waits_for_the_host_says_how_to_make_it(
    run: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = Target(Laptop(CUT, KeyboardInterrupt()), ID, str(run))
    assert watch_until_the_end(target, Shown(0.2, plain=True)) == INTERRUPTED
    said = capsys.readouterr().err
    assert "All sessions have ended; there is no report yet." in said
    assert f"report {ID}" in said
    assert "The sessions go on" not in said
    assert not list(data.rglob("report.html"))


def test_a_report_that_is_asked_for_once_does_not_wait_for_the_host(run: Path) -> None:
    with pytest.raises(HostError, match="connection was lost"):
        report(Laptop(CUT), run)


def test_videos_of_failed_episodes_are_brought_when_they_are_asked_for(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = run / "sessions/stairs_flat/attempt-1/out"
    films = {name: name.encode() * 1_500_000 for name in ("v0.mp4", "v1.mp4", "v9.mp4")}
    for name, content in films.items():
        (output / name).write_bytes(content)
    (output / "episodes.jsonl").write_text("".join(row(n, n != 1, video=f"v{n}.mp4") for n in range(4)))
    (run / "sessions/stairs_flat/attempt-1/videos.tsv").write_text(
        "".join(f"{len(content)}\tok\tout/{name}\n" for name, content in films.items())
    )
    target = target_of(Laptop(), run)
    source, skipped = target.bring()
    assert not list(source.rglob("*.mp4"))
    for _ in range(2):  # the second time nothing is missing
        bring_videos(target, (source, skipped), "failed")
        (brought,) = source.rglob("*.mp4")
        assert (brought.name, brought.read_bytes()) == ("v1.mp4", films["v1.mp4"])
    assert "not copied" not in capsys.readouterr().err
    bring_videos(target, (source, skipped), "all")
    assert "not copied: 2 videos" in capsys.readouterr().err
    (output / "episodes.jsonl").write_text("".join(row(n, n != 1) for n in range(4)))
    bring_videos(target, target.bring(), "failed")
    assert "no failed episode names one" in capsys.readouterr().err
    assert sorted(path.name for path in source.rglob("*.mp4")) == ["v0.mp4", "v1.mp4"]
