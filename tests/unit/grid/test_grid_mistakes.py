"""Every mistake of a grid file at once: its place, what is wrong, what to write instead."""

from __future__ import annotations

from pathlib import Path

import pytest
from gridtext import mistakes, warnings

from comborun.errors import GridError
from comborun.grid import parse_grid
from comborun.text import close_to

GOLDEN = Path(__file__).parents[2] / "golden" / "grid"
BAD = [path for path in sorted(GOLDEN.glob("*.yaml")) if path.stem != "warnings"]
HEAD = """\
policies: [flat, rough]
environments: [grass, stairs]
episodes: 100
command: evaluate {policy} {environment} {episodes} {output_dir}
"""


def test_memory_of_a_gpu_that_nobody_is_granted_is_refused_and_for_some_combos_it_is_told() -> None:
    memory = HEAD + "resources: {gpu_memory: 4 GiB}\n"
    told = mistakes(memory)
    assert "grid.yaml:5:13: `resources` has `gpu_memory` but no `gpus`" in told
    assert "gpus: 1" in told
    server = "servers: {vlm: {command: 'serve {port}', resources: {gpu_memory: 4 GiB}}}\n"
    assert "the server `vlm` would get no GPU" in mistakes(HEAD + server)
    some = memory + "overrides: [{when: {policy: flat}, resources: {gpus: 1}}]\n"
    assert "`gpu_memory` without `gpus`" in warnings(some)
    assert "gpu_memory" not in warnings(HEAD + "resources: {gpus: 1, gpu_memory: 4 GiB}\n")


@pytest.mark.parametrize("ready", ["{path: /, statsu: 200}", "[{path: /, statsu: 200}]"])
def test_a_key_that_one_map_does_not_know_is_named_and_not_the_map(ready: str) -> None:
    server = f"servers: {{vlm: {{command: 'serve {{port}}', ready: {ready}}}}}\n"
    assert "there is no key `statsu` in `servers.vlm.ready`" in mistakes(HEAD + server)


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
def test_a_bad_grid_is_answered_by_the_golden_text(path: Path) -> None:
    with pytest.raises(GridError) as refused:
        parse_grid(path.read_text(), Path(path.name))
    assert f"{refused.value}\n" == path.with_suffix(".txt").read_text()


def test_warnings_are_the_golden_ones() -> None:
    path = GOLDEN / "warnings.yaml"
    grid = parse_grid(path.read_text(), Path(path.name))
    assert "\n".join(map(str, grid.warnings)) + "\n" == path.with_suffix(".txt").read_text()


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("", "grid.yaml: ", "is empty"),
        ("a:\n\tb: 1\n", "2:1", "a tab"),
        ("command: 'python x\nepisodes: 3\n", "1:10", "a quote is opened here and never closed"),
        ('command: "C:\\x"\n', "1:15", "use single quotes"),
        ("policies: [a, b\nenvironments: [x]\n", "1:11", "closing `]`"),
        ("results:\n  files: *_episodes.jsonl\n", "2:10", "`*_episodes.jsonl` is read as an alias"),
        ("name: a\nb\x07c\n", "2:2", "U+0007"),
        ("policies: &a [*a]\n", "1:1", "an alias that contains itself"),
        ("x: " + "[" * 600, "grid.yaml: ", "nested too deeply"),
    ],
)
def test_what_is_no_yaml_is_told_in_words_and_with_its_place(text: str, place: str, words: str) -> None:
    told = mistakes(text)
    assert place in told
    assert words in told


def test_a_few_lines_of_aliases_of_aliases_do_not_fill_the_memory() -> None:
    levels = [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]" for n in range(1, 10)]
    assert "more than 100,000 values" in mistakes("l0: &l0 [x]\n" + "\n".join(levels))


def test_a_file_of_another_kind_is_not_answered_by_thousands_of_lines() -> None:
    with pytest.raises(GridError) as refused:
        parse_grid("".join(f"key_{number}: 1\n" for number in range(300)) + "repeats: 2\n", Path("grid.yaml"))
    told = str(refused.value)
    assert "has 304 mistakes" in told, "301 keys, and no policies, environments and command"
    assert len(told.splitlines()) < 30
    assert "`policies` is missing" in told


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("polices", "policies"),
        ("cmd", "command"),
        ("Policies", "policies"),
        ("presets", "preset"),
        ("episode", "episodes"),
        ("repeats", "seeds"),
    ],
)
def test_a_misspelt_key_is_answered_with_the_right_one(wrong: str, right: str) -> None:
    assert f"did you mean `{right}`?" in mistakes(HEAD + f"{wrong}: x\n")


def test_a_key_like_no_other_is_answered_with_the_page_of_all_keys() -> None:
    assert "`combo docs grid` has its keys" in mistakes(HEAD + "multiplexer: tmux\n")


def test_of_a_word_and_its_plural_the_shorter_is_meant() -> None:
    assert close_to("env", ["environments", "environment", "seed"]) == "environment"
    assert not close_to("ep", ["episodes", "epochs"])
    assert not close_to("abc", ["abcdefghij_x", "abcdefghij_y"])


@pytest.mark.parametrize(("limit", "way"), [("ret > 2", "at_least"), ("info.distance<=0.1", "at_most")])
def test_a_comparison_where_a_field_belongs_is_answered_with_how_a_limit_is_written(limit: str, way: str) -> None:
    assert f"{way}: " in mistakes(HEAD + f"results: {{success: '{limit}'}}\n")


@pytest.mark.parametrize("character", ["\\0", "\\ud800"])
@pytest.mark.parametrize("line", ["command: {}", "variables: {{A: {}}}", "setup: {}", "after: {}"])
def test_a_character_that_no_argument_can_hold_is_refused(line: str, character: str) -> None:
    text = "".join(row + "\n" for row in HEAD.splitlines() if not line.startswith(row[:7]))
    assert "a command line can't pass" in mistakes(text + line.format(f'"a{character}b"') + "\n")


def test_a_message_never_carries_a_control_character_of_the_file() -> None:
    told = mistakes(HEAD + '"evil\\e[31m\\nkey": 1\nvariables: {"\\u202E": 1}\npoll: "\\r1"\n')
    assert all(character.isprintable() or character == "\n" for character in told)
    assert "evil\\x1b[31m\\nkey" in told


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_place_counts_lines_and_characters_as_an_editor_does(newline: str) -> None:
    text = "\ufeff# 日本\n" + HEAD + "name: é # ü\nvariables: {é: x, A: [1]}\n"
    told = mistakes(text.replace("\n", newline))
    assert "grid.yaml:7:13: `variables.é`" in told
    assert "grid.yaml:7:22: `variables.A`" in told


def test_a_piece_of_a_folded_command_is_found_where_it_stands() -> None:
    text = HEAD.replace("command: evaluate", "command: >-\n  evaluate\n  --model {modl}")
    assert "grid.yaml:6:11: `command`: there is no placeholder {modl}" in mistakes(text)
