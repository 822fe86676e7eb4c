"""How busy the machine was: what is read, what is told as unreadable, and what is drawn of it."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_runs import RUN, START, RunDirectory, row

from comborun.reporter import report_run
from comborun.reporter.collect import collect_run
from comborun.reporter.counting.schedule import schedule
from comborun.reporter.figures.sessions import sessions, tracks
from comborun.reporter.records.usage import BINS, Bin, Gpu, Sample, busy, parse_usage, track

LINE = "1778312125.25\t3.5\t16\t1000\t400\t0:20:80:90\t3:::\n"


def test_a_line_tells_of_the_machine_and_of_each_gpu() -> None:
    gpus = (Gpu(0, 20, 80, 90), Gpu(3, None, None, None))
    (sample,), _ = parse_usage(LINE)
    assert sample == Sample(1778312125.25, 3.5, 16, 1000, 400, gpus)
    assert sample.used_kib == 600


def test_what_is_empty_is_unknown_and_never_zero() -> None:
    samples, _ = parse_usage("1778312125\t\t\t\t\n")
    assert samples == (Sample(1778312125.0, None, None, None, None),)
    assert samples[0].used_kib is None
    assert tracks(samples) == ()


def test_a_torn_last_line_is_left_out_without_a_word() -> None:
    samples, defects = parse_usage(LINE + LINE[:-4])
    assert (len(samples), defects) == (1, [])


@pytest.mark.parametrize(
    "garbage",
    [
        "",
        "x",
        LINE[:30],
        LINE[:-1] + "\t",
        LINE[:-1] + "\t4:1:2",
        "1e9\t1\t1\t1\t1",
        "-1\t\t\t\t",
        "१\t\t\t\t",
        "\0" * 9,
    ],
)
def test_a_line_of_garbage_costs_no_other_and_is_named(garbage: str) -> None:
    samples, defects = parse_usage(f"{LINE}{garbage}\n{LINE}")
    assert len(samples) == 2
    assert [(defect.path, defect.line) for defect in defects] == [("dispatch/usage.tsv", 2)]


@given(st.text(alphabet="0123456789.\t:\nx-"))
def test_whatever_the_text_is_each_whole_line_is_a_sample_or_a_defect(text: str) -> None:
    samples, defects = parse_usage(text)
    assert len(samples) + len(defects) == text.count("\n")


def test_a_track_keeps_least_mean_and_most_of_moments_close_together() -> None:
    samples = [Sample(START + i, float(i % 10), 1, None, None) for i in range(10 * BINS)]
    found = track(samples, lambda sample: sample.load)
    assert len(found) <= BINS
    assert {(point.low, point.high) for point in found[1:-1]} == {(0.0, 9.0)}
    assert sum(point.mean for point in found) / len(found) == pytest.approx(4.5, abs=0.1)
    assert [point.time for point in found] == sorted(point.time for point in found)


def test_a_short_track_is_kept_as_it_is_without_what_is_unknown() -> None:
    samples = [Sample(1.0, 2.0, 1, None, None), Sample(2.0, None, 1, None, None), Sample(3.0, 4.0, 1, None, None)]
    assert track(samples, lambda sample: sample.load) == (Bin(1.0, 2.0, 2.0, 2.0), Bin(3.0, 4.0, 4.0, 4.0))


def a_run(path: Path, text: str) -> Path:
    run = RunDirectory(path)
    run.attempt(run.session("flat", "grass", count=1), row(0))
    run.put(RUN.usage, text)
    return run.write()


def usage(seconds: float, words: str = "8\t16\t1000\t400\t0:20480:81920:90") -> str:
    return f"{START + seconds:.6f}\t{words}\n"


def words_of(svgs: tuple[str, ...]) -> list[str]:
    return [part.text or "" for svg in svgs for part in ET.fromstring(svg).iter() if part.tag.endswith("text")]


def test_the_schedule_holds_what_was_seen_between_the_first_start_and_the_last_end(tmp_path: Path) -> None:
    run = a_run(tmp_path, usage(-1) + usage(5) + "torn\n" + usage(59) + usage(61))
    collected = collect_run(run)
    assert [sample.time - START for sample in schedule(collected).usage] == [5.0, 59.0]
    assert [(defect.path, defect.line) for defect in collected.defects] == [("dispatch/usage.tsv", 3)]


def test_the_figure_has_a_strip_for_load_memory_and_each_gpu(tmp_path: Path) -> None:
    figure = sessions(schedule(collect_run(a_run(tmp_path, "".join(usage(second) for second in range(0, 60, 5))))))
    assert figure
    words = words_of([panel.svg() for panel in (figure.legend, *figure.panels) if panel])
    assert {"Load, % of 16 CPUs", "GPU 0: memory, % of 80 GiB; utilization, %", "memory in use"} <= {*words}
    assert "the whole machine" in figure.note


def test_a_time_in_which_nobody_looked_is_a_gap_in_the_line(tmp_path: Path) -> None:
    whole = [usage(second, "8\t16\t\t") for second in range(60)]
    lines = {}
    for name, kept in (("whole", whole), ("gap", whole[:20] + whole[40:])):
        figure = sessions(schedule(collect_run(a_run(tmp_path / name, "".join(kept)))))
        assert figure
        drawn = figure.panels[-1].svg()
        lines[name] = sum(part.tag.endswith("path") for part in ET.fromstring(drawn).iter())
    assert lines["gap"] == lines["whole"] + 1


def test_without_the_file_the_figure_shows_sessions_alone(tmp_path: Path) -> None:
    figure = sessions(schedule(collect_run(a_run(tmp_path, ""))))
    assert figure
    assert "machine" not in figure.note
    assert "memory in use" not in words_of([panel.svg() for panel in (figure.legend, *figure.panels) if panel])


def test_the_json_tells_the_peaks_and_the_means(tmp_path: Path) -> None:
    lines = usage(5) + usage(15, "4\t16\t1000\t100\t0:40960:81920:70\t1:::") + usage(25, "\t\t\t\t0:::")
    report_run(a_run(tmp_path, lines), tmp_path / "out")
    assert json.loads((tmp_path / "out/final_benchmark_report.json").read_text())["usage"] == {
        "samples": 3,
        "cpus": 16,
        "mean_load": 6.0,
        "memory_kib": 1000,
        "peak_memory_kib": 900,
        "gpus": [
            {"gpu": 0, "memory_mib": 81920, "peak_memory_mib": 40960, "mean_utilization": 80.0},
            {"gpu": 1, "memory_mib": None, "peak_memory_mib": None, "mean_utilization": None},
        ],
    }


def test_the_mean_load_is_over_time_though_samples_become_fewer(tmp_path: Path) -> None:
    often = [Sample(START + i, 1.0, 1, None, None) for i in range(1000)]
    seldom = [Sample(START + 1000 + 10 * i, 3.0, 1, None, None) for i in range(100)]
    found = busy([*often, *seldom])
    assert found
    assert found.mean_load == pytest.approx(2.0, abs=0.05)


def test_tables_and_json_tell_the_most_memory_of_any_attempt(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    session = run.session("flat", "grass", count=2)
    run.attempt(session, row(0), peak_memory_kib=900, completeness="partial", cause="lost")
    run.attempt(session, row(1), number=2, started=START + 90, peak_memory_kib=700)
    run.attempt(run.session("flat", "stairs", count=1), row(0), peak_memory_kib="")
    report_run(run.write(), tmp_path / "out")
    document = json.loads((tmp_path / "out/final_benchmark_report.json").read_text())
    assert [combo["peak_memory_kib"] for combo in document["combos"]] == [900, None]
    assert sorted(str(one["peak_memory_kib"]) for one in document["attempts"]) == ["700", "900", "None"]
    rows = csv.DictReader((tmp_path / "out/summary.csv").read_text().splitlines())
    assert [line["peak_memory_kib"] for line in rows] == ["900", ""]
