"""What comes of the files that published programs write: read at once, read with the line that is proposed, or refused
with the reason. Never a wrong number, and never silence. docs/formats.md is the table of them.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from adapter_samples import SAMPLES

from comborun.rules.results.counts import Counts
from comborun.rules.results.fields import LOG, Identity, ResultRules
from comborun.rules.results.result_files import Folder
from comborun.rules.results.tally import tally
from comborun.rules.results.unread import name_unread
from comborun.words.rows import proposed, why_not_counted

UNIT = SAMPLES.parent
READ, LINE, REFUSED = "read", "line", "refused"
Case = tuple[str, str, int, str, tuple[int, int]]
"""the files of the program below its output folder, its log, the episodes that are planned, what comes of it, and how
many of how many verdicts are successes"""

PROGRAMS: dict[str, Case] = {
    "4_env_test run_capstone_eval": ("samples/legged", "", 6, READ, (2, 6)),
    "EmbodiedBench ALFRED": ("samples/bench/running/eb_alfred", "", 3, LINE, (1, 3)),
    "EmbodiedBench Manipulation": ("samples/bench/running/eb_manipulation", "", 1, LINE, (1, 1)),
    "cosmos_agent": ("samples/agent", "", 3, LINE, (1, 2)),
    "RLinf eval_embodiment": ("samples/cluster", "", 16, LINE, (7, 16)),
    "Isaac Lab-Arena episode_results": ("samples/arena", "", 7, READ, (4, 6)),
    "Isaac Lab-Arena arena_experiment_result": ("published/arena", "", 5, LINE, (2, 4)),
    "Isaac Lab-Arena policy_runner, ranks": ("samples/ranks", "", 8, LINE, (5, 8)),
    "GR00T rollout_policy": ("", "samples/rollouts/gr00t/rollout.log", 6, LINE, (4, 6)),
    "LeRobot eval_info": ("samples/lerobot", "", 9, LINE, (6, 9)),
    "LeRobot, older": ("samples/lerobot_older", "", 4, LINE, (1, 4)),
    "openpi LIBERO client": ("", "samples/clients/pi0/libero_spatial.log", 4, LINE, (2, 3)),
    "openvla LIBERO": ("samples/clients", "", 2, LINE, (1, 2)),
    "SimplerEnv": ("published/simpler_env", "", 3, LINE, (2, 3)),
    "ManiSkill ppo": ("samples/maniskill", "", 16, LINE, (14, 16)),
    "robomimic run_trained_agent": ("samples/robomimic/lift.log", "", 10, LINE, (7, 10)),
    "RoboCasa by robomimic": ("samples/robomimic/PnPCounterToCab.json", "", 10, LINE, (7, 10)),
    "Stable-Baselines3 EvalCallback": ("samples/sb3/evaluations.npz", "", 10, LINE, (8, 10)),
    "Stable-Baselines3 Monitor": ("samples/sb3/cartpole.monitor.csv", "", 10, LINE, (8, 10)),
    "vla-eval": ("samples/vla_eval", "", 10, LINE, (5, 9)),
    "Weights & Biases history": ("samples/wandb", "", 10, LINE, (6, 10)),
    "Inspect": ("samples/inspect/match.json", "", 6, LINE, (3, 5)),
    "BEHAVIOR-1K 2026": ("published/behavior", "", 4, LINE, (2, 4)),
    "BEHAVIOR-1K 2025": ("published/behavior_2025", "", 4, REFUSED, (0, 0)),
    "RoboTwin 2.0, its log": ("published/robotwin/eval_result", "published/robotwin/stdout.log", 4, LINE, (3, 4)),
    "RoboTwin 2.0, _result.txt": ("published/robotwin/eval_result", "", 4, REFUSED, (0, 0)),
    "RoboDojo": ("published/robodojo", "", 4, LINE, (3, 4)),
    "VLABench": ("published/vlabench", "", 6, LINE, (3, 6)),
    "CALVIN (RoboFlamingo's evaluate)": ("published/calvin", "", 4, REFUSED, (0, 0)),
    "Cosmos Policy LIBERO": ("published/cosmos_policy", "", 10, LINE, (7, 10)),
    "EmbodiChain evaluation": ("published/embodichain", "", 20, LINE, (16, 20)),
    "EmbodiChain training": ("samples/training", "", 4, REFUSED, (0, 0)),
    "MolmoSpaces": ("published/molmospaces", "published/molmospaces/stdout.log", 4, LINE, (3, 4)),
}


def counted(folder: Path, planned: int, given: dict[str, Any]) -> Counts:
    """What a host counts, with what it says of the rest."""
    files = given.pop("files", ("**/*.jsonl",))
    rules = ResultRules(
        files=(files,) if isinstance(files, str) else files, source=given.pop("from", "output"), **given
    )
    identity, output = Identity("rough", "stairs", rules, planned), str(folder / "out")
    log = os.path.relpath(folder / "log", output) if rules.source == LOG else ""
    held = Folder(output, () if log else rules.files, identity, rules.format, log)
    counts = tally(held.read(), identity, (0, planned), over=True)
    name_unread(counts, held, (0, planned), str(folder / "log"))
    return counts


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_published_program_is_read_or_its_line_is_proposed_or_it_is_said_why_not(tmp_path: Path, name: str) -> None:
    files, log, planned, wanted, told = PROGRAMS[name]
    place = tmp_path / "out" / "run"
    place.mkdir(parents=True)
    if (UNIT / files).is_dir() and files:
        shutil.copytree(UNIT / files, place, dirs_exist_ok=True, ignore=shutil.ignore_patterns("stdout.log"))
    elif files:
        shutil.copy(UNIT / files, place)
    (tmp_path / "log").write_bytes((UNIT / log).read_bytes() if log else b"")
    counts = counted(tmp_path, planned, {})
    keys = next(filter(None, map(proposed, counts.facts)), {})
    if wanted == READ:
        assert (counts.successes, counts.verdicts, keys) == (*told, {})
        return
    assert not counts.verdicts
    assert why_not_counted(counts.facts)
    if wanted == REFUSED:
        assert not keys
        return
    counts = counted(tmp_path, planned, dict(keys))
    assert (counts.successes, counts.verdicts) == told
    assert not counts.proposes


def test_the_document_has_a_row_for_each_of_them() -> None:
    text = (Path(__file__).parents[3] / "docs" / "formats.md").read_text("utf-8")
    rows = {
        cells[1].strip(): cells[-2].strip()
        for cells in (line.split("|") for line in text.splitlines())
        if len(cells) > 3
    }
    said = {READ: "read at once", LINE: "with the proposed line", REFUSED: "refused"}
    assert {name: said[case[3]] for name, case in PROGRAMS.items()} == {
        name: re.split("[:;]", rows.get(name, "no row"))[0] for name in PROGRAMS
    }
