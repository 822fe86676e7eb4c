"""Which files hold records: the host and the report take the same ones, as bash reads their patterns."""

from __future__ import annotations

from pathlib import Path

import pytest
from report_runs import RUN, RunDirectory, row

from comborun.reporter.collect import collect_run
from comborun.rules.results.fields import Identity, ResultRules
from comborun.rules.results.result_files import Folder

FILES = (
    *("top", "b", "c", "[b]", "two words", "back\\slash", "é", "file_link"),
    *("a/x", "a/b/y", "a/b/1", "a/b/10", "a/b/c/deep", "sp ace/q q", "link/through", "link/sub/through"),
    *(".hidden", ".folder/z", "a/.folder/w", "a/b/.being_written"),
)
TOP = {"top", "b", "c", "[b]", "two words", "back\\slash", "é", "file_link"}
DEEP = {"a/x", "a/b/y", "a/b/1", "a/b/10", "a/b/c/deep", "sp ace/q q"}

TAKEN = {
    "*.jsonl": TOP,
    "**/*.jsonl": TOP | DEEP,
    "**/**/*.jsonl": TOP | DEEP,
    "**": TOP | DEEP,
    "**.jsonl": TOP,
    "a/**": {"a/x", "a/b/y", "a/b/1", "a/b/10", "a/b/c/deep"},
    "a/**/*.jsonl": {"a/x", "a/b/y", "a/b/1", "a/b/10", "a/b/c/deep"},
    "**/b/*.jsonl": {"a/b/y", "a/b/1", "a/b/10"},
    "**/top.jsonl": {"top"},
    "*/*.jsonl": {"a/x", "sp ace/q q", "link/through"},
    "link/*.jsonl": {"link/through"},
    "link/**/*.jsonl": set(),
    "?.jsonl": {"b", "c", "é"},
    "[b].jsonl": {"b"},
    "[!b].jsonl": {"c", "é"},
    "[^b].jsonl": {"c", "é"},
    "a/b/[0-9]*.jsonl": {"a/b/1", "a/b/10"},
    "two words.jsonl": {"two words"},
    "sp ace/*.jsonl": {"sp ace/q q"},
    "./top.jsonl": {"top"},
    "{top,b}.jsonl": set(),
    "$(touch pwned)": set(),
    ".hidden.jsonl": set(),
    ".*": set(),
    ".folder/*.jsonl": set(),
    "**/.folder/*.jsonl": set(),
    "[.jsonl": set(),
    "A/*.jsonl": set(),
    "../*.jsonl": set(),
}  # fmt: skip


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an attempt, with folders, links, and names that are awkward."""
    root = tmp_path_factory.mktemp("records")
    folder, elsewhere = root / RUN.attempt("maze_good", 1).output, root / "elsewhere"
    folder.mkdir(parents=True)
    elsewhere.mkdir()
    (folder / "link").symlink_to(elsewhere)
    (elsewhere / "one").write_text(row(99))
    (folder / "file_link.jsonl").symlink_to(elsewhere / "one")
    for number, name in enumerate(name for name in FILES if name != "file_link"):
        path = folder / f"{name}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(row(number))
    return folder


def on_the_host(output: Path, *patterns: str) -> list[str]:
    folder = Folder(str(output), patterns, Identity("good", "maze"), "")
    return [path for path, _ in folder.read().rows]


def in_the_report(output: Path, *patterns: str) -> list[str]:
    run = RunDirectory(output.parents[3])
    run.attempt(run.session("good", "maze", results=ResultRules(files=patterns)))
    run.write()
    at = RUN.attempt("maze_good", 1).output
    return [Path(file.path).relative_to(at).as_posix() for file in collect_run(run.path).files]


@pytest.mark.parametrize("pattern", TAKEN)
def test_both_halves_take_the_same_files(output: Path, pattern: str) -> None:
    expected = sorted(f"{name}.jsonl" for name in TAKEN[pattern])
    assert sorted(on_the_host(output, pattern)) == expected
    assert sorted(in_the_report(output, pattern)) == expected


def test_a_file_that_two_patterns_find_is_taken_once(output: Path) -> None:
    patterns = ("**/*.jsonl", "top.jsonl", "*.jsonl")
    assert sorted(on_the_host(output, *patterns)) == sorted(in_the_report(output, *patterns))


def test_without_a_pattern_every_jsonl_file_counts_at_whatever_depth(output: Path) -> None:
    assert sorted(in_the_report(output, *ResultRules().files)) == sorted(f"{name}.jsonl" for name in TOP | DEEP)


def test_an_output_folder_that_is_itself_a_link_is_read(output: Path, tmp_path: Path) -> None:
    linked = tmp_path / RUN.attempt("maze_good", 1).output
    linked.parent.mkdir(parents=True)
    linked.symlink_to(output)
    for taken in (on_the_host(linked, "**/*.jsonl"), in_the_report(linked, "**/*.jsonl")):
        assert sorted(taken) == sorted(f"{name}.jsonl" for name in TOP | DEEP)
