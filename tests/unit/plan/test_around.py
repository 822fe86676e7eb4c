"""What is put around a command: files, links, launchers, containers, and policies that are files of the host."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import gridtext
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from comborun.errors import GridError, UserError
from comborun.generate.compose import compose_text
from comborun.generate.run_scripts import session_script
from comborun.grid import parse_grid
from comborun.grid.combos import MatchedFile, named_policies
from comborun.model.command import CommandError, FileText, file_word, launched
from comborun.model.plan import Plan, PolicyFiles
from comborun.model.resources import Container, LinkedFolder
from comborun.planner.knowledge import pace_key
from comborun.planner.laying import lay_out

GOLDEN = Path(__file__).parents[2] / "golden"
HERE = gridtext.host(3, cpus=16)
AXES = "policies: {flat: {checkpoint: ~/c/flat.pt, envs: 4}}\nenvironments: [grass]\nepisodes: 8\n"


def plan_of(text: str, axes: str = AXES) -> Plan:
    return gridtext.plan(axes + text, HERE)


def bash(word: str, **variables: str) -> str:
    words = ["bash", "-c", f"printf '%s.' {word}"]
    done = subprocess.run(words, env={"HOME": "/home/me", **variables}, capture_output=True, text=True, check=True)
    return done.stdout[:-1]


# files


def test_a_map_is_written_as_json_with_what_its_placeholders_stand_for() -> None:
    plan = plan_of(
        "files:\n  job.json:\n    name: 'the {policy} {{x}'\n    episodes: '{episodes}'\n    envs: '{policy.envs}'\n"
        "    n: [1.50, true, null, '1', []]\n    at: '{policy.checkpoint}'\n    home: ~/x\n    out: '{output_dir}/v'\n"
        "command: run {file.job.json} {episodes} {output_dir}\n"
    )
    (name, text), *others = plan.sessions[0].around.files
    assert (name, others) == ("job.json", [])
    written = bash(text, COMBORUN_EPISODES="5", COMBORUN_OUTPUT_DIR="/o")
    assert json.loads(written) == {
        "name": "the flat {x}", "episodes": 5, "envs": 4, "n": [1.5, True, None, "1", []],
        "at": "/home/me/c/flat.pt", "home": "/home/me/x", "out": "/o/v",
    }  # fmt: skip
    assert '"n": [\n  1.50,' in written
    assert plan.sessions[0].command[1] == '"$COMBORUN_FILES"/job.json'
    assert "\nprintf '%s' " + plan.sessions[0].around.files[0][1].splitlines()[0] in session_script(plan.sessions[0])


@settings(max_examples=40)
@given(st.dictionaries(st.text(), st.recursive(st.text(), lambda inner: st.lists(inner).map(tuple), max_leaves=5)))
def test_any_text_in_json_comes_out_as_it_went_in(tree: dict[str, str]) -> None:
    literal = json.loads(json.dumps(tree), object_hook=dict)
    word = file_word(FileText(tree=_guarded(tree)), {})
    if "~/" in json.dumps(tree) or "\\u0000" in json.dumps(tree):
        return  # the home is filled in; no bash word holds a NUL
    assert json.loads(bash(word)) == literal


def _guarded(tree: Any) -> Any:
    if isinstance(tree, str):
        return tree.replace("{", "{{")
    if isinstance(tree, dict):
        return {_guarded(key): _guarded(value) for key, value in tree.items()}
    return tuple(_guarded(value) for value in tree)


def test_files_links_and_containers_are_a_part_of_the_work() -> None:
    plain = plan_of("command: run {episodes} {output_dir}\n")
    for more in ("files: {a.txt: x}\n", "workdir: {link_from: /r}\n", "container: image\n"):
        other = plan_of(more + "command: run {episodes} {output_dir}\n")
        assert other.digest != plain.digest
        assert pace_key(other.sessions[0]) != pace_key(plain.sessions[0])
        assert Plan.from_json(other.to_json()) == other
    assert plan_of("files: {a.txt: x}\ncommand: run {episodes}\n").digest != plan_of(
        "files: {a.txt: y}\ncommand: run {episodes}\n"
    ).digest  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("files: {a.json: {x: '{policy.none}'}}\ncommand: run", "{policy.none} stands for an attribute"),
        ("files: {a.json: {x: .inf}}\ncommand: run", "a number that JSON can't write in this form"),
        ("command: run {file.job.json}", "is a file that `files` does not write for"),
        ("workdir: {exclude: x}\ncommand: run", "`exclude` without `link_from`"),
        ("workdir: {folder: /a, link_from: /b}\ncommand: run", "`folder` and `link_from`"),
        ("launcher: {processes: 2}\ncommand: torchrun a.py", "starts all ranks"),
        ("launcher: {processes: 2, arguments: --nproc-per-node=4}\ncommand: a.py", "comborun sets --nproc-per-node"),
        ("launcher: torchrun\nresources: {gpus: 2}\npin: none\ncommand: a.py", "rank r takes the r-th visible GPU"),
        ("container: {mounts: data}\ncommand: run", "is not a folder of the host"),
        ("container: {runtime: docker}\ncommand: run", "`container` without an `image`"),
        ("container: i\npin: device-arg\nresources: {gpus: 1}\ncommand: run", "start at 0"),
        ("container: i\nworkdir: here\ncommand: run", "a folder inside the container, but a relative path"),
    ],
)
def test_a_mistake_is_told(text: str, message: str) -> None:
    assert message in gridtext.mistakes(f"{AXES}{text}\n")


def test_what_looks_like_a_mistake_is_told_too() -> None:
    text = "launcher: {processes: 3}\ncommand: a.py {episodes_per_rank} {output_dir}\n"
    assert "8 episodes are not a multiple of 3 ranks: each runs 3, 9 in all" in gridtext.warnings(AXES + text)


def test_an_override_changes_a_part_of_it_or_takes_it_away() -> None:
    text = (
        "policies: [a, b, c]\nenvironments: [x]\nepisodes: 8\ncommand: a.py {episodes} {output_dir}\n"
        "launcher: {processes: 2, arguments: --max-restarts=1}\n"
        "container: {image: i, mounts: [/d], options: --ipc=host}\n"
        "workdir: {link_from: /r, exclude: data}\noverrides:\n"
        "  - {when: {policy: b}, launcher: none, container: none, workdir: /w}\n"
        "  - {when: {policy: c}, launcher: {processes: 4}, container: {image: j}}\n"
    )
    a, b, c = plan_of(text, "").sessions
    assert a.around.container == Container("i", "docker", ("/d:/d",), ("--ipc=host",))
    assert a.around.links == LinkedFolder("/r", ("data",))
    assert (a.around.ranks, b.around.ranks, c.around.ranks) == (2, 0, 4)
    assert (b.around.container, b.around.links, b.workdir) == (None, None, "/w")
    assert c.around.container == Container("j", "docker", ("/d:/d",), ("--ipc=host",))
    assert "--max-restarts=1" in c.command


# launchers


@pytest.mark.parametrize(
    ("command", "start"),
    [
        ("python -u train.py --a '{policy} x'", "python -m torch.distributed.run {} train.py --a '{{policy}} x'"),
        ("~/env/bin/python3.11 -m pack.mod -v", "'~/env/bin/python3.11' -m torch.distributed.run {} -m pack.mod -v"),
        ("./train.py", "python -m torch.distributed.run {} ./train.py"),
        ("embodichain train-rl", "python -m torch.distributed.run {} --no_python embodichain train-rl"),
    ],
)
def test_a_command_is_started_on_every_rank(command: str, start: str) -> None:
    options = "--standalone --nproc_per_node={gpu_count} --log_dir={output_dir}/ranks --tee=3"
    assert launched(command) == start.replace("{}", options).replace("{{", "{").replace("}}", "}")


# policies that are files


def test_files_are_called_what_the_wildcards_stand_for() -> None:
    def names(*pairs: tuple[str, str]) -> list[str]:
        return [
            name
            for name, _ in named_policies(
                tuple(MatchedFile(pattern, path, path.endswith("/x")) for pattern, path in pairs)
            )
        ]

    plain = "~/c/*.pt"
    assert names((plain, "~/c/step_10.pt"), (plain, "~/c/step_9.pt")) == ["step_9", "step_10"]
    assert names(("/r/*/model.pt", "/r/a b/model.pt"), ("/r/*/model.pt", "/r/c/model.pt")) == ["a-b-model", "c-model"]
    assert names(("/r/**/*.pt", "/r/a/b/m.pt"), ("/r/**/*.pt", "/r/m.pt")) == ["a-b-m", "m"]
    assert names(("/r/m.*", "/r/m.pt"), ("/r/m.*", "/r/m.ckpt")) == ["m-ckpt", "m-pt"]
    assert names((plain, "~/c/a.pt"), ("~/c/a*", "~/c/a.pt")) == ["a"]
    with pytest.raises(UserError, match="would be one policy"):
        names(("/r/m.*", "/r/m.p_t"), ("/r/m.*", "/r/m.p_t "))


def test_a_glob_is_read_as_if_its_files_were_written_there() -> None:
    text = "policies: {glob: ~/c/*.pt, exclude: '*_last.pt'}\nenvironments: [x]\nepisodes: 1\n"
    text += "command: run {policy.checkpoint} {episodes} {output_dir}\noverrides: [{when: {policy: b}, seed: 3}]\n"
    unasked = gridtext.grid(text)
    assert (unasked.policy_files, len(unasked.combos)) == (None, 1)
    with pytest.raises(ValueError, match="are not known yet"):
        lay_out(unasked, HERE)
    grid = parse_grid(text, Path("grid.yaml"), (("a", "~/c/a.pt"), ("b", "~/c/b.pt")))
    plan = lay_out(grid, HERE)
    assert [(one.policy, one.seed, one.command[1]) for one in plan.sessions] == [
        ("a", None, '"$HOME"/c/a.pt'),
        ("b", 3, '"$HOME"/c/b.pt'),
    ]
    assert Plan.from_json(plan.to_json()).policy_files == plan.policy_files
    assert plan.policy_files == PolicyFiles(("~/c/*.pt",), ("*_last.pt",), (("a", "~/c/a.pt"), ("b", "~/c/b.pt")))
    with pytest.raises(GridError, match=r"grid.yaml:5:29: there is no policy `b`"):
        parse_grid(text, Path("grid.yaml"), (("a", "~/c/a.pt"),))


@pytest.mark.parametrize(
    ("policies", "message"),
    [
        ("{glob: c/*.pt}", "`c/*.pt` is a relative path"),
        ("{glob: ~/c/*.pt, flat: }", "`flat` beside `glob`"),
        ("{glob: []}", "an empty list"),
    ],
)
def test_a_glob_that_no_host_can_answer_is_refused(policies: str, message: str) -> None:
    axes = f"policies: {policies}\nenvironments: [x]\nepisodes: 1\n"
    assert message in gridtext.mistakes(axes + "command: run {episodes} {output_dir}\n")


# Compose


COMPOSED = """\
policies: {cosmos: {checkpoint: ~/ckpt/c}}
environments: {alfred: {env: alfred}, habitat: {env: habitat}}
episodes: 40
shards: 2
container: {image: embodied_bench_v1, mounts: [~/ckpt, "/data:/data:ro"]}
setup: export A="$HOME"
secrets: {HF_TOKEN: host}
variables: {B: "it's $5"}
files: {job.json: {n: "{episodes}"}}
resources: {gpus: 1}
command: >-
  python cosmos_agent.py --env {environment.env} --model {policy.checkpoint} --job {file.job.json} --output_dir
  {output_dir} --start_episode {first_episode} --num_episodes {episodes} --device cuda:{gpu}
"""


def test_a_compose_file_gives_each_service_its_gpu_and_its_shard(tmp_path: Path) -> None:
    text = compose_text(plan_of("", COMPOSED))
    golden = GOLDEN / "compose" / "shards.yaml"
    if os.environ.get("COMBORUN_GOLDEN") == "write":
        golden.write_text(text)
    assert text == golden.read_text()
    if program := shutil.which("docker-compose"):
        (tmp_path / "compose.yaml").write_text(text)
        words = [program, "-f", str(tmp_path / "compose.yaml"), "config", "--quiet"]
        subprocess.run(words, check=True, env={**os.environ, "HF_TOKEN": "x", "HOME": "/home/me"})


def test_what_compose_can_not_say_is_refused() -> None:
    for more, message in (
        ("", "has no container"),
        ("container: {image: i, runtime: apptainer}\n", "runs in apptainer"),
        ("container: i\nworkdir: {link_from: /r}\n", "link_from"),
        ("container: i\ndisplay: xvfb\n", "display: xvfb"),
        ("container: i\nresources: {per_host: 2}\n", "per_host"),
    ):
        with pytest.raises(UserError, match=message):
            compose_text(plan_of(more + "command: run {episodes} {output_dir}\n"))


def test_a_compose_service_gets_its_display_cores_and_memory_and_waits_for_what_it_must_have_alone() -> None:
    axes = AXES.replace("grass", "grass, stairs, sand") + "container: i\ncommand: run {episodes} {output_dir}\n"
    more = "resources: {cpus: 4, memory: 3 GiB, exclusive: ray}\ndisplay: ':7'\nlimits: {memory: enforce}\n"
    services = YAML().load(compose_text(plan_of(more, axes)))["services"]
    first, second, third = services.values()
    assert first["deploy"]["resources"] == {
        "limits": {"cpus": "4", "memory": "3072M"},
        "reservations": {"memory": "3072M"},
    }
    assert "DISPLAY=:7" in first["environment"]
    assert "/tmp/.X11-unix:/tmp/.X11-unix" in first["volumes"]
    assert "depends_on" not in first
    assert [[*one["depends_on"]] for one in (second, third)] == [["grass_flat"], ["stairs_flat"]]
    alone = YAML().load(compose_text(plan_of(more.replace(", exclusive: ray", "").replace("display", "#"), axes)))
    assert not any("depends_on" in one for one in alone["services"].values())


def test_a_launcher_is_told_what_a_person_wants() -> None:
    told = launched("a.py", 4, "--max-restarts=2", "./isaaclab.sh -p -m torch.distributed.run")
    assert told.startswith("./isaaclab.sh -p -m torch.distributed.run --standalone --nproc_per_node=4 ")
    assert told.endswith(" --tee=3 --max-restarts=2 a.py")
    with pytest.raises(CommandError, match="can't start"):
        launched("python -c 'print()'")
