"""The files of a report: as whole texts, byte for byte the same, harmless whatever the records hold."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
import sys
import threading
import time
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as ET

import jsonschema
import pytest
from markdown_it import MarkdownIt
from report_runs import RunDirectory, document, row, troubled_run, write_rows

from comborun import __version__
from comborun.errors import UserError
from comborun.reporter.collect import collect_run
from comborun.reporter.figures.files import FORMS
from comborun.reporter.figures.labels import fit, fit_apart, measure
from comborun.reporter.figures.rates import heat_map
from comborun.reporter.pages.data import COLUMNS, SUMMARY_COLUMNS
from comborun.reporter.pages.page import TEMPLATES
from comborun.reporter.report import report_folder, report_run, write_report
from comborun.reporter.summary import summarize
from comborun.rules.results.fields import ResultRules
from comborun.rules.results.formats import FORMATS

GOLDEN = Path(__file__).parents[2] / "golden" / "report"
CHECKOUT = Path(__file__).parents[3]
TEXTS = (
    *("episodes.csv", "final_benchmark_report.json", "report.md", "report.tex", "summary.csv"),
    *("final_benchmark_report.schema.json", "report.html"),
)
"""all but the last two are held as whole texts"""
FIGURES = ("cumulative_success", "intervals", "sessions", "success_rates", "time_to_success")
FILES = (*TEXTS, *(f"figures/{name}.{ending}" for name in FIGURES for ending in FORMS))


@pytest.fixture(scope="module")
def troubled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report's folder of the run that has every kind of trouble."""
    run = troubled_run(tmp_path_factory.mktemp("run"))
    report_run(run, run / "report", forms=FORMS)
    return run / "report"


def portable(text: str) -> str:
    """Without what another version of comborun may write."""
    return text.replace(f"comborun {__version__}", "comborun VERSION")


def made(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("name", TEXTS[:-2])
def test_the_file_is_the_golden_one(troubled: Path, name: str) -> None:
    assert portable((troubled / name).read_text()) == (GOLDEN / name).read_text()


def test_the_report_is_these_files_and_no_others(troubled: Path) -> None:
    assert made(troubled) == sorted(FILES)
    assert made(GOLDEN) == sorted(TEXTS[:-2])
    assert all((troubled / name).read_bytes().startswith(b"%PDF") for name in FILES if name.endswith("pdf"))


def test_the_files_are_readable_for_others(troubled: Path) -> None:
    assert {(troubled / name).stat().st_mode & 0o777 for name in FILES} == {0o644}


SCRIPT = (
    "import sys, pathlib; from comborun.reporter.figures.files import FORMS;"
    " from comborun.reporter.report import report_run;"
    " report_run(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), forms=FORMS)"
)


def test_the_same_records_give_the_same_bytes_wherever_and_whenever(troubled: Path, tmp_path: Path) -> None:
    elsewhere = {"TZ": "Asia/Kathmandu", "LC_ALL": "de_DE.UTF-8", "PYTHONHASHSEED": "4242"}
    environment = {**os.environ, **elsewhere, "PYTHONPATH": str(CHECKOUT), "MPLCONFIGDIR": str(tmp_path)}
    (tmp_path / "matplotlibrc").write_text("font.weight: bold\n")
    words = [sys.executable, "-c", SCRIPT, str(troubled.parent), "out"]
    subprocess.run(words, cwd=tmp_path, env=environment, check=True, timeout=100)
    for name in FILES:
        assert (tmp_path / "out" / name).read_bytes() == (troubled / name).read_bytes(), name


def test_nothing_in_the_files_tells_where_they_were_made(troubled: Path) -> None:
    for name in FILES:
        assert str(troubled.parent).encode() not in (troubled / name).read_bytes()


class Cells(HTMLParser):
    """The text of a page, a piece per table row, list item, paragraph or figure cell group; its tags and attributes."""

    BLOCKS = frozenset({"tr", "li", "p", "h1", "h2", "dd", "svg"})

    def __init__(self) -> None:
        super().__init__()
        self.blocks: list[str] = [""]
        self.silent = 0
        self.tags: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.silent += tag in {"style", "title", "script"}
        if tag in self.BLOCKS:
            self.blocks.append("")

    def handle_endtag(self, tag: str) -> None:
        self.silent -= tag in {"style", "title", "script"}
        if tag in self.BLOCKS:
            self.blocks.append("")

    def handle_data(self, data: str) -> None:
        if not self.silent:
            self.blocks[-1] += " " + data.strip()


def blocks(html: str) -> list[str]:
    parser = Cells()
    parser.feed(html)
    return [" ".join(block.split()) for block in parser.blocks if block.strip()]


RATE = re.compile(r"(?<![\d.])[<>]?\d+\.\d %")
WHOLE = re.compile(r"(\d+)/(\d+) (?:= |\| )?[<>]?\d+\.\d % (?:\| )?\[[<>\d.]+, [<>\d.]+\]")


def test_no_rate_stands_without_its_n_and_interval(troubled: Path) -> None:
    texts = [*(troubled / "report.md").read_text().splitlines(), *blocks((troubled / "report.html").read_text())]
    rates = 0
    for text in texts:
        rates += len(RATE.findall(text))
        assert len(RATE.findall(text)) == len(WHOLE.findall(text)), text
        assert not re.search(r"\d %", RATE.sub("", text).replace("95 %", "")), text
    assert rates > 20
    assert "%" not in (troubled / "episodes.csv").read_text().replace("%20", "")


def test_a_rate_in_json_has_its_n_and_interval_beside_it(troubled: Path) -> None:
    combos = document(troubled)["combos"]
    assert any(combo["success_rate"] is None for combo in combos)
    for combo in combos:
        given = [combo["success_rate"] is not None, combo["interval"] is not None, bool(combo["completed"])]
        assert given in ([True] * 3, [False] * 3), combo
        if combo["success_rate"] is not None:
            assert combo["success_rate"] == combo["successes"] / combo["completed"]
            assert combo["interval"][0] <= combo["success_rate"] <= combo["interval"][1]
            assert combo["completed"] + combo["errored"] + combo["missing"] == combo["planned"]


def test_json_holds_to_the_schema_beside_it_which_describes_every_key(troubled: Path) -> None:
    schema = json.loads((troubled / "final_benchmark_report.schema.json").read_text())
    report = document(troubled)
    assert report["$schema"] == "final_benchmark_report.schema.json"
    jsonschema.Draft202012Validator.check_schema(schema)
    combo, comparison = (schema["properties"][name]["items"]["properties"] for name in ("combos", "comparisons"))
    pairs = ((report, schema["properties"]), (report["combos"][0], combo), (report["comparisons"][0], comparison))
    assert [key for keys, described in pairs for key in keys if not described[key].get("description")] == []
    report["combos"][0]["success_rate"] = 90.0
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(report, schema)


def test_every_column_is_documented() -> None:
    text = (CHECKOUT / "docs" / "report.md").read_text()
    assert [column for column in (*COLUMNS, *SUMMARY_COLUMNS) if f"`{column}`" not in text] == []


# -- text from records is text --------------------------------------------------------------------------------------


def test_a_page_of_hostile_text_holds_no_markup_but_its_own(troubled: Path) -> None:
    text = (troubled / "report.html").read_text()
    page = Cells()
    page.feed(text)
    assert not page.tags & {"b&", "iframe", "img", "link", "object", "form"}
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    assert script == (TEMPLATES / "report.js").read_text()
    assert f"script-src 'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'" in text
    assert not {name for name in page.attributes if name.startswith("on")}
    assert "<script>alert(1)</script>|`a`*b*" in " ".join(blocks(text))
    assert not re.search(r"""(?:src|href)=["']?(?!data:|#)|url\((?!#)|@import|https?://(?!www\.w3\.org)""", text)


def test_markdown_shows_hostile_text_as_it_is(troubled: Path) -> None:
    tokens = MarkdownIt("commonmark").enable("table").parse((troubled / "report.md").read_text())
    assert not any(token.type.startswith("html") for token in tokens)
    inline = [child for token in tokens for child in token.children or ()]
    assert {child.type for child in inline} <= {"text", "softbreak", "strong_open", "strong_close", "text_special"}
    cells = ["".join(child.content for child in token.children or ()) for token in tokens if token.type == "inline"]
    assert "<script>alert(1)</script>|`a`*b*" in cells
    assert "$x_{1}$" in cells


def test_no_cell_of_the_table_of_episodes_is_a_formula(troubled: Path) -> None:
    rows = list(csv.DictReader(io.StringIO((troubled / "episodes.csv").read_text())))
    assert not [cell for entry in rows for cell in entry.values() if cell.startswith(("=", "+", "-", "@", "\t", "\r"))]
    assert {entry["note"] for entry in rows} == {"", "'=cmd|' /C calc'!A0", "plain"}
    assert 'a,b\n"c"' in {entry["where"] for entry in rows}


def test_no_cell_of_the_tables_steers_a_terminal(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    row_ = row(0, note="\x1b]0;title\x07\x9b2J", lines="a\r\nb\tc", hidden="shown\rhides", deep=["\x7f"])
    run.attempt(run.session("flat\x1b[2J", "stairs", name="stairs_flat", count=1), row_)
    report_run(run.write(), tmp_path / "report")
    for name in ("episodes.csv", "summary.csv"):
        content = (tmp_path / "report" / name).read_bytes().decode()
        assert not re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]|\r(?!\n)", content), name
        assert "flat\\x1b[2J" in content
    (cells,) = csv.DictReader(io.StringIO((tmp_path / "report" / "episodes.csv").read_bytes().decode(), newline=""))
    assert (cells["note"], cells["lines"], cells["hidden"]) == (
        "\\x1b]0;title\\x07\\x9b2J",
        "a\r\nb\tc",
        "shown\\rhides",
    )


def test_negative_numbers_stay_numbers_and_colliding_fields_keep_their_names(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    session = run.session("flat", "stairs", count=2)
    run.attempt(session, row(0, reward=-1.5, verdict="mine", attempt=9) + row(1, deep={"b": [1]}, fell=True))
    report_run(run.write(), tmp_path / "report")
    first, second = csv.DictReader(io.StringIO((tmp_path / "report" / "episodes.csv").read_text()))
    assert (first["reward"], first["verdict"], first["record.verdict"]) == ("-1.5", "success", "mine")
    assert (first["attempt"], first["record.attempt"]) == ("1", "9.0")
    assert (second["deep"], second["fell"]) == ('{"b": [1]}', "true")


def test_a_program_that_invents_field_names_does_not_fill_the_report(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    rows = "".join(row(index, **{f"x{index:03}_{number}": number for number in range(10)}) for index in range(50))
    run.attempt(run.session("flat", "stairs", count=50), rows)
    report_run(run.write(), tmp_path / "report")
    header, *_, last = csv.reader(io.StringIO((tmp_path / "report" / "episodes.csv").read_text()))
    assert len(header) == len(COLUMNS) + 201
    assert json.loads(last[-1]) == {f"x049_{number}": float(number) for number in range(10)}
    assert len(document(tmp_path / "report")["combos"][0]["metrics"]) == 40


NAMES = [
    "a\nb",
    "\u202eright to left",
    "half \ud800 pair",
    "\0",
    "日本語",
    "x" * 300,
    "a" * 40 + "1",
    "</svg>",
    "&amp;",
    "$x_{1}$",
    "=",
]


def test_names_of_all_kinds_go_through_all_formats(tmp_path: Path) -> None:
    lines = [row(0, policy=name, environment="any") for name in NAMES]
    write_rows(tmp_path / "rows.jsonl", lines)
    summary = report_folder(tmp_path, tmp_path / "out")
    assert len(summary.combos) == len(NAMES)
    html = (tmp_path / "out" / "report.html").read_text()
    for svg in re.findall(r"<svg.*?</svg>", html, re.DOTALL):
        ET.fromstring(svg)
    assert "\u202e" not in html
    assert "a\\nb" in " ".join(blocks(html))
    assert ">$x_{1}$</text>" in html
    assert "\\$x\\_\\{1\\}\\$" in (tmp_path / "out" / "report.tex").read_text()
    assert "\0" not in html
    assert document(tmp_path / "out")["policies"] == sorted(name.replace("\ud800", "?") for name in NAMES)


def test_a_large_page_opens_with_five_claims_and_folds_the_rest(tmp_path: Path) -> None:
    rows = (
        row(index, policy=f"policy{policy}", environment=f"environment{environment}", success=index < 4 * policy)
        for policy in range(6)
        for environment in range(5)
        for index in range(20)
    )
    write_rows(tmp_path / "rows.jsonl", rows)
    summary = report_folder(tmp_path, tmp_path / "out")
    decided = len(summary.claims.decided)
    assert decided > 10
    html = (tmp_path / "out" / "report.html").read_text()
    shown, folded = html.partition('<ul class="claims">')[2].split("</ul>")[:2]
    assert (shown.count("<li>"), folded.count("<li>")) == (5, decided - 5)
    assert f"<summary>{decided - 5} more claims</summary>" in folded
    anchors = re.findall(r'<a href="#(\w+)">', html)
    assert anchors[0] == "ranking"
    assert {*anchors} <= set(re.findall(r'<section id="(\w+)">', html))
    assert "<details><summary>30 combos</summary>" in html
    assert html.count('<details class="environment" open>') == 5
    assert "more in report.html" in (tmp_path / "out" / "report.md").read_text()


def test_a_combo_that_failed_shows_the_last_lines_of_its_log(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    log = "".join(f"step {number}\n" for number in range(2000)) + "0 %\r50 %\n\x1b[31mKeyError: <b>'obs'</b>\x1b[0m\n"
    failed, fine = run.session("flat", "stairs", count=2), run.session("flat", "grass", count=1)
    run.attempt(failed, row(0), code=1, cause="exited", completeness="partial", records=1)
    run.attempt(fine, row(0))
    for session in (failed, fine):
        run.put(f"sessions/{session.name}/attempt-1/log", log)
    report_run(run.write(), tmp_path / "out")
    html = (tmp_path / "out" / "report.html").read_text()
    (shown,) = re.findall(r"<pre tabindex=\"0\">\n(.*?)</pre>", html, re.DOTALL)
    lines = shown.splitlines()
    assert lines[-3:] == ["step 1999", "50 %", "KeyError: &lt;b&gt;&#39;obs&#39;&lt;/b&gt;"]
    assert len(lines) == 12


def grid_of(folder: Path, policies: list[str], environments: list[str]) -> Path:
    """The report's folder of results of two episodes each."""
    rows = (
        row(index, index > 0, policy=policy, environment=environment)
        for policy in policies
        for environment in environments
        for index in range(2)
    )
    write_rows(folder / "rows.jsonl", rows)
    report_folder(folder, folder / "out")
    return folder / "out"


def test_long_names_are_shortened_once_and_stay_apart_and_whole_for_programs(tmp_path: Path) -> None:
    long = ["N" * 20_000 + end for end in "12"]
    out = grid_of(tmp_path, [*long, "plain"], ["grass", "stairs"])
    for name in ("report.html", "report.md", "report.tex"):
        text = (out / name).read_text()
        assert len(text) < 100_000
        assert "1 (name 1)" in text
        assert "2 (name 2)" in text
    assert document(out)["policies"] == [*long, "plain"]


def test_a_run_with_a_long_name_is_reported_too(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    run.attempt(run.session("N" * 200, "stairs", name="stairs_n", count=1), row(0))
    report_run(run.write(), tmp_path / "out")
    assert "(name 1)" in (tmp_path / "out" / "report.html").read_text()


def test_the_page_of_more_than_a_thousand_combos_has_the_map_alone(tmp_path: Path) -> None:
    names = [f"name{number:02}" for number in range(36)]
    out = grid_of(tmp_path, names, names)
    html = (out / "report.html").read_text()
    assert len(html) < 1_000_000
    assert 'id="success_rates"' in html
    for text in (html, (out / "report.md").read_text()):
        assert "1296 combos are too many for tables here; summary.csv has a row for each" in text
    assert len((out / "summary.csv").read_text().splitlines()) == 1297


# -- figures ----------------------------------------------------------------------------------------------------------


def figure_texts(svg: str) -> list[str]:
    return ["".join(text.itertext()) for text in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]


def drawn_heat_map(run: Path) -> str:
    figure = heat_map(summarize(collect_run(run)).summary)
    assert figure
    (panel,) = figure.panels
    return panel.svg()


def test_every_cell_of_the_heat_map_says_what_it_stands_on(troubled: Path) -> None:
    texts = figure_texts(drawn_heat_map(troubled.parent))
    place = texts.index("4/5")
    assert texts[place : place + 3] == ["4/5", "80.0 % [28.4, 99.5]", "3 missing, 2 errored"]
    assert texts.count("no verdict: 0 of 10") == 2
    assert texts.count("no such combo") == 3
    assert "steps, no rate" in texts
    rates = [text for text in texts if "% [" in text]
    assert all(re.fullmatch(r"[<>\d.]+ % \[[<>\d.]+, [<>\d.]+\]", text) for text in rates)
    assert all(re.fullmatch(r"\d+/\d+", texts[texts.index(text) - 1]) for text in rates)


def test_text_of_the_heat_map_is_legible_on_its_cell_on_any_paper(troubled: Path) -> None:
    drawn = ET.fromstring(drawn_heat_map(troubled.parent))
    inks = {"".join(text.itertext()): text.get("fill") for text in drawn.iter()}
    assert inks["0/2"] == "#ffffff"
    assert inks["10/10"] == "#010101"
    assert inks["friction"] is None, "the page's own colour"


def test_the_longer_axis_of_the_heat_map_runs_down(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    for policy in ("p1", "p2", "p3"):
        run.attempt(run.session(policy, "only"), row(0))
    texts = figure_texts(drawn_heat_map(run.write()))
    assert [text for text in texts if text in {"only", "p1", "p2", "p3"}] == ["only", "p1", "p2", "p3"]


def test_without_rates_there_is_no_heat_map(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    run.attempt(run.session("flat", "stairs", unit="step"))
    run.attempt(run.session("flat", "grass", results=ResultRules(files=())))
    report_run(run.write(), tmp_path / "report", forms=FORMS)
    html = (tmp_path / "report" / "report.html").read_text()
    assert made(tmp_path / "report" / "figures") == ["sessions.pdf", "sessions.png", "sessions.svg"]
    assert not RATE.search(" ".join(blocks(html)))
    assert "there is no table" in (tmp_path / "report" / "report.tex").read_text()


def test_a_figure_that_the_records_no_longer_support_goes(troubled: Path, tmp_path: Path) -> None:
    stale = tmp_path / "figures" / "failure_kinds.svg"
    stale.parent.mkdir()
    stale.write_text("old")
    (tmp_path / "figures" / "mine.svg").write_text("not ours")
    write_report(collect_run(troubled.parent), tmp_path)
    assert not stale.exists()
    assert (tmp_path / "figures" / "mine.svg").exists()


@pytest.mark.parametrize("name", ["short", "checkpoint_of_the_long_training_run_000100", "日本語" * 20, "W" * 300])
def test_a_name_fits_into_its_room_and_keeps_both_ends(name: str) -> None:
    shown = fit(name, 1.5, 9)
    assert measure(shown, 9) <= 1.5
    assert (shown[0], shown[-1]) == (name[0], name[-1])
    assert ("…" in shown) == (len(name) > 20)


def test_names_that_differ_in_their_middle_alone_are_told_apart() -> None:
    tasks = [f"put the red block number {number} into the bowl on the left side" for number in ("7", "12", "123")]
    assert fit_apart(tasks, 1.5, 9) == ["…7…", "…12…", "…123…"]
    assert fit_apart(["grass", "stairs"], 1.5, 9) == ["grass", "stairs"]
    checkpoints = [f"openvla-7b-finetuned-libero-lora-step{step}-of-200000-seed7" for step in ("50000", "150000")]
    assert fit_apart([*checkpoints, "pi0"], 1.5, 9) == ["…step50000…", "…step150000…", "pi0"]
    families = [f"{one}_of_the_very_long_family_number_{at}_with_much_said" for one in ("red", "blue") for at in "12"]
    assert len({*fit_apart(families, 1.2, 9)}) == len(families)


# -- putting the files in place ---------------------------------------------------------------------------------------


def test_two_reporters_at_once_leave_one_whole_report(troubled: Path, tmp_path: Path) -> None:
    collected = collect_run(troubled.parent)
    barrier = threading.Barrier(2)
    failures: list[BaseException] = []

    def make() -> None:
        barrier.wait(30)
        try:
            write_report(collected, tmp_path / "out", FORMS[-1:])
        except BaseException as error:  # noqa: BLE001 - told by the main thread
            failures.append(error)

    threads = [threading.Thread(target=make) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []
    files = [name for name in FILES if not name.endswith(FORMS[:-1])]
    assert made(tmp_path / "out") == sorted(files)
    for name in files:
        assert (tmp_path / "out" / name).read_bytes() == (troubled / name).read_bytes()


def test_a_report_that_cannot_be_put_in_place_leaves_the_old_one_and_no_rest(troubled: Path, tmp_path: Path) -> None:
    (tmp_path / "episodes.csv").mkdir()
    (tmp_path / "report.html").write_text("old")
    with pytest.raises(UserError, match="the report can't be written"):
        write_report(collect_run(troubled.parent), tmp_path)
    assert not list(tmp_path.glob(".*"))


def test_a_folder_with_nothing_to_report_says_what_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no results of a known format below") as refusal:
        report_folder(tmp_path, tmp_path / "out")
    assert '"success": true' in refusal.value.hint
    assert {*FORMATS} <= set(re.findall(r"[a-z-]+", refusal.value.hint))
    assert not (tmp_path / "out").exists()


def test_a_report_of_twenty_thousand_metrics_is_made_in_seconds(tmp_path: Path) -> None:
    metrics = {f"m{number}": 1e300 for number in range(20_000)}
    rows = ({"policy": "p", "environment": "e", "episode": at, "success": True, **metrics} for at in range(20))
    write_rows(tmp_path / "a.jsonl", rows)
    began = time.process_time()
    report_folder(tmp_path, tmp_path / "out")
    assert time.process_time() - began < 20, "where the time grows with the square, this takes minutes"


def test_a_folder_of_bad_files_says_why_each_gave_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('x\ny\n{"success": true}\n')
    (tmp_path / "b.jsonl").write_text("")
    with pytest.raises(UserError) as refusal:
        report_folder(tmp_path, tmp_path / "out")
    assert refusal.value.message.splitlines()[1:] == [
        "  a.jsonl: not JSON (2 times)",
        "  a.jsonl: no field 'episode' with the episode's index",
        "  b.jsonl: the file holds no records",
    ]
    assert refusal.value.exit_code == 1, "files were read, and none counts"


def test_a_mean_names_the_environments_where_episodes_are_missing(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    for environment, count in (("grass", 4), ("stairs", 2)):
        run.attempt(run.session("flat", environment, count=4), "".join(row(n) for n in range(count)))
    report_run(run.write(), tmp_path / "out")
    text = (tmp_path / "out/report.md").read_text()
    assert "| policy | mean | 95 % interval | environments | episodes | not complete |" in text
    assert re.search(r"^\| flat \| 100\.0 \| .* \| 2 \| 6 \| stairs \|$", text, re.MULTILINE)
    assert ">not complete</th>" in (tmp_path / "out/report.html").read_text()
