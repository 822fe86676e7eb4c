"""Presets: data that is checked, laid below grids, and turned into the golden commands."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path

import gridtext
import pytest
from click.testing import CliRunner

from comborun.cli import combo
from comborun.errors import GridError, UserError
from comborun.generate.run_scripts import server_script, session_script
from comborun.grid import Grid, load_grid, parse_grid, preset_starter, read_preset
from comborun.grid.draft import keys_of
from comborun.grid.keys.grid_file import AboutKeys
from comborun.grid.presets import SHIPPED, find_preset, known_presets
from comborun.model.plan import Session
from comborun.planner.laying import lay_out

CHECKOUT = Path(__file__).parents[3]
GOLDEN = CHECKOUT / "tests" / "golden" / "presets.txt"
DOCUMENT = (CHECKOUT / "docs" / "presets.md").read_text()
NAMES = sorted(path.stem for path in SHIPPED.glob("*.yaml"))
SERVED = {
    "vllm": "{model: Qwen/Qwen2.5-VL-7B-Instruct}",
    "gr00t-server": "{model: ~/ckpt/n1, tag: gr1}",
    "openpi-server": "{config: pi05_libero, directory: ~/ckpt/pi05}",
}
PROGRAMS = [name for name in NAMES if name not in SERVED]
AXES = "policies: [a]\nenvironments: [x]\nepisodes: 9\n"
MINE = """\
about: {summary: mine, starter: 'policies: [a]', unpaired: it ignores seeds, defaults: {policy: {size: 3}}}
command: run {policy} --size {policy.size} --env {environment} --episodes {episodes} {output_dir}
variables: {A: "1", B: "2"}
limits: {stagger: 30 s, attempts: 5}
evidence: {line: done, grace: 90 s}
results: {files: "*.txt", success: ok}
"""


@pytest.fixture(autouse=True)
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own folder of presets, empty."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    folder = tmp_path / "config" / "comborun" / "presets"
    folder.mkdir(parents=True)
    return folder


def grid_of(folder: Path, preset: str, grid: str = AXES) -> Grid:
    (folder / "mine.yaml").write_text(preset)
    (folder / "grid.yaml").write_text("preset: ./mine.yaml\n" + grid)
    return load_grid(folder / "grid.yaml")


def starter(name: str) -> str:
    return preset_starter(find_preset(name, Path()), name, "my_grid")


def sessions(grid: Grid) -> tuple[Session, ...]:
    return lay_out(grid, gridtext.host(4)).sessions


def told(grid: str, folder: Path, preset: str) -> str:
    with pytest.raises(GridError) as refused:
        grid_of(folder, preset, grid)
    return str(refused.value).replace(f"{folder}/", "")


def test_a_starter_names_the_command_that_explains_its_preset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my preset.yaml").write_text(MINE)
    (shown,) = re.findall(r"combo (presets show .*?)   ", starter("./my preset.yaml"))
    assert CliRunner().invoke(combo, shlex.split(shown)).output.startswith("my preset: mine")


def test_starters_are_good_grids_and_the_commands_of_presets_and_of_their_servers_are_the_golden_ones() -> None:
    found, scripts = {}, []
    for name in PROGRAMS:
        grid = parse_grid(starter(name), Path("/grids/grid.yaml"))
        assert (grid.warnings, len(grid.combos) >= 2) == ((), True), name
        first = sessions(grid)[0]
        found[name] = first.command
        scripts.append(session_script(first))
    for name, attributes in SERVED.items():
        text = "policies: [a]\nenvironments: [x]\nepisodes: 1\ncommand: run {server.it.url} {episodes} {output_dir}\n"
        entry = f"servers:\n  it: {{preset: {name}, attributes: {attributes}}}\n"
        grid = parse_grid(text + entry, Path("grid.yaml"))
        assert grid.warnings == ()
        (one,) = lay_out(grid, gridtext.host(4)).server_instances
        found[name] = one.server.command
        scripts.append(server_script(one))
    assert sorted(found) == NAMES
    commands = "".join(f"{name}: {' '.join(words)}\n" for name, words in sorted(found.items()))
    if os.environ.get("COMBORUN_GOLDEN") == "write":
        GOLDEN.write_text(commands)
    assert commands == GOLDEN.read_text()
    for script in scripts:
        subprocess.run(["bash", "-n"], input=script, text=True, check=True)


@pytest.mark.parametrize("name", NAMES)
def test_it_explains_exactly_the_attributes_that_its_command_takes(name: str) -> None:
    preset = find_preset(name, Path())
    used = set(re.findall(r"\{(policy|environment)\.(\w+)\}", preset.source.text))
    described = preset.about.attributes
    assert used == {("policy", key) for key in described.policy} | {
        ("environment", key) for key in described.environment
    }
    assert set(preset.about.defaults.policy) <= set(described.policy)
    assert set(preset.about.defaults.environment) <= set(described.environment)


def test_arguments_of_the_grid_follow_the_command_of_the_preset_and_are_checked_like_it(tmp_path: Path) -> None:
    keys = "policies: [a, b]\nenvironments: [x]\nepisodes: 9\narguments: --first {first_episode} {policy}\n"
    grid = grid_of(tmp_path, MINE, f"{keys}overrides:\n  - {{when: {{policy: b}}, arguments: --mason}}\n")
    with_range, mason = (combo.settings for combo in grid.combos)
    assert with_range.command.endswith("--first {first_episode} {policy}")
    assert mason.command.endswith("--mason")
    assert (with_range.ranged, mason.ranged) == (True, False)
    with pytest.raises(GridError, match=r"`arguments`: there is no placeholder \{polcy\}"):
        grid_of(tmp_path, MINE, keys.replace("{policy}", "{polcy}"))


@pytest.mark.parametrize(("shards", "possible"), [("nonetheless any range", True), ('"none: one task"', False)])
def test_a_preset_says_whether_its_program_can_be_cut(shards: str, possible: bool, tmp_path: Path) -> None:
    preset = MINE.replace("about: {", f"about: {{shards: {shards}, ", 1)
    keys = AXES + "arguments: --first {first_episode} {policy}\nshards: 2\n"
    if possible:
        assert len(lay_out(grid_of(tmp_path, preset, keys), gridtext.host()).sessions) == 2
    else:
        assert "its preset says: none: one task" in told(keys, tmp_path, preset)


def test_the_grid_wins_and_maps_are_merged(tmp_path: Path) -> None:
    grid = grid_of(
        tmp_path,
        MINE,
        "policies: {a: , b: {size: 7}}\nenvironments: [x]\nepisodes: 9\nvariables: {B: two}\n"
        "limits: {attempts: 1}\nevidence: {grace: 1 s}\nresults: {success: solved}\n",
    )
    one = grid.combos[0]
    assert dict(one.settings.variables) == {"A": "1", "B": "two"}
    assert (grid.limits.stagger, grid.limits.attempts) == (30.0, 1)
    assert (one.settings.evidence.line, one.settings.watch.hang_s) == ("done", 1)
    assert (one.settings.results.files, one.settings.results.success.name) == (("*.txt",), "solved")
    assert [combo.policy.attributes["size"] for combo in grid.combos] == ["3", "7"]


def test_a_mistake_is_told_where_it_stands(tmp_path: Path) -> None:
    preset = MINE.replace("30 s", "soon").replace("{policy.size}", "{policy.sise}")
    text = told(AXES.replace("9", "0"), tmp_path, preset)
    assert "grid.yaml has 3 mistakes" in text
    assert re.search(r"^grid\.yaml:4:11: `episodes`", text, re.MULTILINE)
    assert re.search(r"^mine\.yaml:2:30: `command`: \{policy\.sise\}.*\n.*`size`", text, re.MULTILINE)
    assert re.search(r"^mine\.yaml:4:19: `limits\.stagger`", text, re.MULTILINE)


@pytest.mark.parametrize(
    ("wrong", "place", "words"),
    [
        ("host: h100\n", "7:1", "`host` is not a key of a preset"),
        ("polices: [a]\n", "7:1", "there is no key `polices`"),
        ("seed: 1\nseed: 2\n", "8:1", "occurs a second time|twice"),
    ],
)
def test_what_is_no_key_of_a_preset_is_refused(wrong: str, place: str, words: str, tmp_path: Path) -> None:
    assert re.search(rf"mine\.yaml:{place}: .*({words})", told(AXES, tmp_path, MINE + wrong))


def test_a_preset_that_is_not_there_is_told_with_the_one_that_was_meant() -> None:
    for preset, words in (
        ("openpie", r"grid.yaml:1:9: `preset`: there is no preset `openpie`\n.*`openpi`"),
        ("nope", r"there is no preset `nope`\n.*`combo presets` lists them"),
        ("./none.yaml", r"grid.yaml:1:9: `preset`: none\.yaml can"),
    ):
        assert re.search(words, gridtext.mistakes(f"preset: {preset}\n"))


def test_a_server_is_no_preset_of_a_grid() -> None:
    assert "is a model server" in gridtext.mistakes("preset: vllm\npolicies: [a]\nenvironments: [x]\n")
    with pytest.raises(UserError, match="is a model server"):
        starter("vllm")


def test_a_server_preset_is_laid_below_an_entry_of_servers_and_told_with_its_place() -> None:
    text = "policies: [a]\nenvironments: [x]\ncommand: run {server.it.port}\nservers:\n  it: {preset: PRESET}\n"
    openpi, vllm = (gridtext.mistakes(text.replace("PRESET", name)) for name in ("openpi", "vllm"))
    assert "grid.yaml:5:16: `servers.it.preset`: `openpi` is not a model server" in openpi
    assert re.search(r"comborun/presets/vllm.yaml:.*there is no placeholder \{server.model\}", vllm)


def test_ones_own_preset_comes_before_a_shipped_one(own: Path) -> None:
    (own / "openpi.yaml").write_text(MINE)
    assert find_preset("openpi", Path()).text == MINE
    assert known_presets()["openpi"].parent == own
    listed = CliRunner().invoke(combo, ["presets"], catch_exceptions=False).output
    assert re.search(r"openpi +mine \(yours\)", listed)


def test_its_notes_are_no_part_of_the_work_but_of_what_is_known_of_a_run(tmp_path: Path) -> None:
    before = grid_of(tmp_path, MINE)
    after = grid_of(tmp_path, MINE.replace("it ignores seeds", "seeds are ignored"))
    assert [one.digest for one in sessions(before)] == [one.digest for one in sessions(after)]
    assert [one.unpaired for one in sessions(after)] == ["seeds are ignored"]
    assert before.program.digest != after.program.digest
    changed = grid_of(tmp_path, MINE.replace("--size", "--width"))
    assert sessions(changed)[0].digest != sessions(before)[0].digest


def test_the_document_lists_exactly_the_keys_of_about() -> None:
    table = DOCUMENT.split("| key of `about` | what |\n")[1].split("\n\n")[0]
    assert set(re.findall(r"^\| `(\w+)` ", table, re.MULTILINE)) == set(keys_of(AboutKeys))


def test_the_preset_of_the_document_is_a_good_one(tmp_path: Path) -> None:
    (text,) = re.findall(r"```yaml preset\n(.*?)```", DOCUMENT, re.DOTALL)
    preset = read_preset("my-eval", "my-eval.yaml", text)
    grid = grid_of(tmp_path, text, preset.about.starter)
    assert grid.warnings == ()
    assert sessions(grid)[0].ranged
