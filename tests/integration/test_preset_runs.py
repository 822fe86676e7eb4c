"""Every preset with a replica of its program, faults included: launched as users launch it, in real tmux sessions."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from box import until
from click.testing import CliRunner
from desk import CHECKOUT, Desk, desk_at

from comborun.cli import combo
from comborun.host.record import judging
from comborun.host.system import files
from comborun.remote.fetch import fetch
from comborun.remote.transport import LocalTransport
from comborun.reporter.collect import collect_run
from comborun.reporter.counting.combo import ComboSummary
from comborun.reporter.summary import summarize
from comborun.rules import globs
from comborun.rules.names import AttemptLayout

REPLICAS = CHECKOUT / "tests" / "replicas"
LINKS = {
    "4_env_test/src/run_capstone_eval.py": "capstone_eval.py",
    "openpi/examples/libero/main.py": "openpi_libero.py",
    "openvla/experiments/robot/libero/run_libero_eval.py": "openvla_libero.py",
    "SimplerEnv/simpler_env/main_inference.py": "simpler_inference.py",
    "ManiSkill/examples/baselines/ppo/ppo.py": "maniskill_ppo.py",
    "EmbodiedBench/embodiedbench/main.py": "embodied_bench.py",
    "EmbodiedBench/cosmos_agent/cosmos_agent.py": "cosmos_agent.py",
    "Isaac-GR00T/gr00t/eval/rollout_policy.py": "gr00t_rollout.py",
    "IsaacLab-Arena/isaaclab_arena/evaluation/eval_runner.py": "arena_runner.py",
    "IsaacLab-Arena/isaaclab_arena/evaluation/policy_runner.py": "arena_ranks.py",
    "lib/torch/distributed/run.py": "torch_run.py",
    "lib/embodichain/__main__.py": "embodichain_train.py",
}
"""what lies where a preset looks for it, below the home folder"""
WRAPPERS = {
    "bin/python": "",
    "bin/lerobot-eval": "lerobot_eval.py",
    "RLinf/evaluations/run_eval.sh": "rlinf_eval.py",
}
ISAACLAB = """#!/bin/bash
shift  # -p
exec python "$@"
"""
HEAD = "preset: {preset}\nresources: {{gpus: 0}}\nevidence: {{grace: 1 s}}\nretry: none\npoll: 0.3\n"
LAUNCHED = dict.fromkeys(("embodichain", "isaaclab-arena-ranks"), "launcher: {processes: 2}\n")
LIMITS = "limits: {stagger: 0 s, parallel: 4}\n"

GRIDS = {
    "isaaclab-eval": ("checkpoint: a.pt", "[stairs]", 60, "stopped hang killed"),
    "openpi": ("port: 8000", "{libero_goal: {trials: 4}}", 8, "caught waiting reworded"),
    "openvla-libero": ("checkpoint: a", "{libero_goal: {trials: 4}}", 8, "caught short"),
    "lerobot": ("checkpoint: a, batch: 2", "{libero_goal: {trials: 4}}", 8, "killed"),
    "simpler-env": ("checkpoint: a, model: rt1", "{Coke-v0: {scene: s, robot: r}}", 8, "segfault"),
    "maniskill": ("checkpoint: a.pt", "[PickCube-v1]", 8, "killed"),
    "embodiedbench": ("model: m, url: 'http://h/v1'", "{alfred: {env: eb-alf}}", 8, "retrying"),
    "cosmos-agent": ("checkpoint: a", "{home: {env: habitat}}", 8, "caught"),
    "gr00t": ("port: 5555", "[libero_sim/task_a]", 8, "killed"),
    "isaaclab-arena": ("type: zero_action", "{pick: {envs: 2}}", 8, "'null'"),
    "isaaclab-arena-ranks": ("type: zero_action", "[pick]", 8, "dies"),
    "rlinf": ("config: c, checkpoint: a", "{radio: {envs: 4, epochs: 2}}", 8, "exit0"),
    "embodichain": ("", "{pick: {configs: ~/configs}}", 400, "exit0 interrupted"),
}
"""attributes of policies, environments, planned episodes, and the faults: each is a policy beside `good`"""

GOOD = ("succeeded", 8, 6, 0, 0)
SHOULD = {
    ("isaaclab-eval", "good"): ("succeeded", 60, 45, 0, 0),
    ("isaaclab-eval", "stopped"): ("partial", 30, 22, 0, 30),
    ("isaaclab-eval", "hang"): ("succeeded", 60, 45, 0, 0),
    ("isaaclab-eval", "killed"): ("failed", 0, 0, 0, 60),
    ("openpi", "caught"): ("succeeded", 4, 3, 4, 0),
    ("openpi", "waiting"): ("failed", 0, 0, 0, 8),
    ("openpi", "reworded"): ("succeeded", 8, 6, 0, 0),
    ("openvla-libero", "caught"): ("succeeded", 4, 4, 4, 0),
    ("openvla-libero", "short"): ("partial", 4, 3, 0, 4),
    ("lerobot", "killed"): ("failed", 0, 0, 0, 8),
    ("simpler-env", "segfault"): ("succeeded", 8, 6, 0, 0),
    ("maniskill", "killed"): ("failed", 0, 0, 0, 8),
    ("embodiedbench", "retrying"): ("partial", 4, 3, 0, 4),
    ("cosmos-agent", "caught"): ("partial", 4, 3, 0, 4),
    ("gr00t", "killed"): ("failed", 0, 0, 0, 8),
    ("isaaclab-arena", "null"): ("succeeded", 6, 5, 2, 0),
    ("isaaclab-arena-ranks", "good"): ("succeeded", 8, 5, 0, 0),
    ("isaaclab-arena-ranks", "dies"): ("failed", 0, 0, 0, 8),
    ("rlinf", "exit0"): ("failed", 0, 0, 0, 8),
    ("embodichain", "good"): ("succeeded", None),
    ("embodichain", "exit0"): ("failed", None),
    ("embodichain", "interrupted"): ("failed", None),
}
"""outcome, and episodes: completed, successes, errored, missing; `good` is listed only if it differs from GOOD"""


def grid(preset: str) -> str:
    attributes, environments, episodes, faults = GRIDS[preset]
    names = ["good", *faults.split()]
    policies = "".join(f"  {name}: {{{attributes}}}\n" for name in names)
    when = "  - {{when: {{policy: {0}}}, variables: {{REPLICA: {0}}}, limits: {{stall_after: {1}}}}}\n"
    stalls = {"waiting", "retrying"}
    overrides = "".join(when.format(name, "3 s" if name in stalls else 0) for name in names[1:])
    head = HEAD.format(preset=preset) + LIMITS + LAUNCHED.get(preset, "")
    return f"{head}policies:\n{policies}environments: {environments}\nepisodes: {episodes}\noverrides:\n{overrides}"


def furnish(home: Path) -> None:
    """Put the replicas where the presets look for their programs."""
    for path, replica in LINKS.items():
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        (home / path).symlink_to(REPLICAS / replica)
    for path, replica in WRAPPERS.items():
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        program = f' "{REPLICAS / replica}"' if replica else ""
        (home / path).write_text(f'#!/bin/sh\nexec "{sys.executable}"{program} "$@"\n')
        (home / path).chmod(0o755)
    for folder in (
        "IsaacLab",
        "openvla/rollouts",
        "EmbodiedBench/embodiedbench/configs",
        "EmbodiChain/outputs",
        "configs",
    ):
        (home / folder).mkdir(parents=True, exist_ok=True)
    (home / "IsaacLab/isaaclab.sh").write_text(ISAACLAB)
    (home / "IsaacLab/isaaclab.sh").chmod(0o755)
    for name in (
        "EmbodiedBench/embodiedbench/configs/eb-alf.yaml",
        "IsaacLab/a.pt",
        "ManiSkill/examples/baselines/ppo/a.pt",
    ):
        (home / name).touch()
    for policy in ("good", "exit0", "interrupted"):
        (home / f"configs/{policy}.json").touch()


@pytest.fixture(scope="module")
def furnished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with desk_at(tmp_path_factory.mktemp("presets") / "a home") as desk:
        furnish(desk.home)
        desk.environment["PATH"] = f"{desk.home}/bin:{desk.environment['PATH']}"
        desk.environment["PYTHONPATH"] += f":{desk.home}/lib"
        desk.environment |= {"COMBORUN_WATCH_S": "0.5", "COMBORUN_GRACE_S": "1", "COMBORUN_STOP_INT_S": "1"}
        yield desk


@pytest.fixture(scope="module")
def runs(furnished: Desk) -> dict[str, Path]:
    """The run directory of every preset, all of them at its end."""
    directories: dict[str, Path] = {}
    for preset in GRIDS:
        directories[preset] = launched(furnished, preset, grid(preset))
    for preset, directory in directories.items():
        until((directory / "dispatch/done").exists, f"the run of {preset} has ended", 120)
    return directories


def launched(desk: Desk, name: str, text: str) -> Path:
    """The directory of a run that has just been started."""
    path = desk.home / f"{name}.yaml"
    path.write_text(text)
    done = CliRunner().invoke(combo, ["launch", str(path), "--json"], env=desk.environment)
    assert done.exit_code == 0, done.output
    return Path(json.loads(done.stdout.splitlines()[0])["directory"])


def found(run: Path) -> dict[str, ComboSummary]:
    return {one.policy: one for one in summarize(collect_run(run)).summary.combos}


def told(one: ComboSummary) -> tuple[object, ...]:
    if one.counts is None:
        return str(one.ending.outcome), None
    counts = one.counts
    return str(one.ending.outcome), counts.completed, counts.successes, counts.errored, counts.missing


def test_their_outcomes_and_counts_are_what_happened(runs: dict[str, Path]) -> None:
    for preset, run in runs.items():
        should = {"good": GOOD} | {policy: row for (name, policy), row in SHOULD.items() if name == preset}
        assert {policy: told(one) for policy, one in found(run).items()} == should, preset


def test_the_cause_of_an_end_is_told(runs: dict[str, Path]) -> None:
    causes = {
        ("isaaclab-eval", "hang"): "hung",
        ("simpler-env", "segfault"): "SEGV",
        ("openpi", "waiting"): "stalled",
        ("embodiedbench", "retrying"): "stalled",
    }
    for (preset, policy), cause in causes.items():
        ending = found(runs[preset])[policy].ending
        assert cause in " ".join((ending.cause, *ending.warnings)), preset


def test_the_table_counts_by_the_log_what_the_host_can_not_count(furnished: Desk, runs: dict[str, Path]) -> None:
    counted = {"openpi": 8, "lerobot": 8, "isaaclab-eval": 60, "cosmos-agent": 8, "embodichain": 400}
    for preset, done in counted.items():
        told = CliRunner().invoke(combo, ["status", runs[preset].name, "--json"], env=furnished.environment)
        sessions = {one["policy"]: one for one in json.loads(told.stdout)["sessions"]}
        assert (sessions["good"]["episodes_done"], sessions["good"]["outcome"]) == (done, "succeeded"), preset
    assert sessions["exit0"]["episodes_done"] == 200


FAULTS = {
    "stop": 'Traceback (most recent call last):\n  File "eval.py", line 1, in main\nKeyboardInterrupt\n',
    "crash": "Traceback (most recent call last):\n  File \"eval.py\", line 1, in main\nKeyError: 'x'\n",
    "memory": "Traceback (most recent call last):\n  File x, line 1, in main\nRuntimeError: CUDA out of memory\n",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_last_line_of_a_program_does_not_prove_the_work_that_it_did_not_do(
    fault: str, runs: dict[str, Path], tmp_path: Path
) -> None:
    """It is stopped, or catches an error, at 30 % of its work, prints its last lines all the same, and ends with 0."""
    for preset, run in runs.items():
        at = AttemptLayout(str(tmp_path / preset / "attempt-1"))
        shutil.copytree(next(run.glob("sessions/*_good*")) / "attempt-1", at.directory, symlinks=True)
        assert judging.judge(at, 0).completeness == "complete", preset
        rules = judging.Rules.of(files.read(at.claim))
        text = Path(at.log).read_bytes().decode("utf-8", "replace").replace("\r", "\n")
        Path(at.log).write_text(thirty_percent(text) + FAULTS[fault])
        if fault == "stop":
            judging.note_signal(at)
        last = [line for line in text.split("\n") if rules.line and re.search(rules.line, line)][-1:]
        with Path(at.log).open("a") as log:
            log.writelines(re.sub(r"(num_trajectories\D+|num_episodes\D+)8\b", r"\g<1>2", line) + "\n" for line in last)
        cut_short(Path(at.output), rules)
        assert judging.judge(at, 0).completeness != "complete", preset
        Path(at.log).write_text(thirty_percent(text))
        judging.note_signal(at)
        with Path(at.log).open("a") as log:
            log.write(text)
        after = judging.judge(at, None).completeness
        assert not rules.line or after != "complete", f"{preset}: after the signal nothing is proven"


def thirty_percent(text: str) -> str:
    lines = text.split("\n")
    return "\n".join(lines[: len(lines) * 3 // 10]) + "\n"


def cut_short(out: Path, rules: judging.Rules) -> None:
    """Leave 30 % of the rows and of the files of episodes; documents that come at the end are not there yet."""
    found = [out / path for path in globs.found(str(out), [*rules.results.files, *rules.evidence_files])]
    if len(found) == 1 and found[0].suffix in {".jsonl", ".txt"}:
        found[0].write_text(thirty_percent(found[0].read_text()))
        return
    for path in sorted(found)[len(found) * 3 // 10 :]:
        path.unlink()


RANGES = {"embodiedbench": "arguments: ++selected_indexes=[{episode_list}]\n"}
"""what a preset that can be cut for some of its environments needs besides"""


@pytest.mark.parametrize("preset", ["simpler-env", "cosmos-agent", "embodiedbench"])
def test_a_program_that_takes_ranges_is_cut_into_blocks_without_gap_or_overlap(preset: str, furnished: Desk) -> None:
    whole = re.sub(
        r"  - \{when.*\n|overrides:\n|^  (segfault|caught|retrying): .*\n", "", grid(preset), flags=re.MULTILINE
    )
    run = launched(furnished, f"{preset}-blocks", whole + RANGES.get(preset, "") + "block: 3\n")
    until((run / "dispatch/done").exists, f"the blocks of {preset} have ended", 60)
    assert len(list(run.glob("sessions/*"))) == 3
    assert {policy: told(one) for policy, one in found(run).items()} == {"good": GOOD}


def test_what_pairs_nothing_is_known_from_the_preset(runs: dict[str, Path]) -> None:
    reasons = {preset: set(collect_run(run).unpaired.values()) for preset, run in runs.items()}
    assert reasons["isaaclab-arena"] != set()
    assert "its program tells how many episodes succeeded, not which" in reasons["rlinf"]
    assert reasons["openpi"] == reasons["lerobot"] == set()


def test_the_manifest_names_the_preset_and_its_digest(runs: dict[str, Path]) -> None:
    provenance = collect_run(runs["openpi"]).provenance
    assert provenance["preset"]["name"] == "openpi"
    assert len(provenance["preset"]["sha256"]) == 64


def test_a_copy_of_a_run_has_the_logs_that_are_results_or_tell_of_a_failure(
    runs: dict[str, Path], tmp_path: Path
) -> None:
    assert collected(mirror_of(runs["openpi"], tmp_path)) == collected(runs["openpi"])
    logs = mirror_of(runs["lerobot"], tmp_path).glob("sessions/*/attempt-1/log")
    assert {log.parts[-3] for log in logs} == {"libero_goal_killed"}


def mirror_of(run: Path, folder: Path) -> Path:
    mirror = folder / run.name
    fetch(LocalTransport(), str(run), mirror)
    return mirror


def collected(run: Path) -> tuple[object, ...]:
    what = collect_run(run)
    return what.records, what.rejects, what.defects
