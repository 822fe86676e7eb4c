"""Generated session scripts: whole texts, read by bash and shellcheck."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from monitor_stage import a_session

from comborun.generate.run_scripts import FRONT, notify_script, scripts, session_script
from comborun.model.command import fill
from comborun.model.judging import NOTICE_KINDS, EvidenceRules, RetryRule, WatchRules
from comborun.model.plan import After, Limits, Notify, Plan
from comborun.model.resources import BashWord
from comborun.rules.endings.failures import Failure
from comborun.rules.results.fields import ResultRules

GOLDEN = Path(__file__).parents[2] / "golden" / "scripts"

COMMAND = (
    "./isaaclab.sh -p ~/4_env_test/src/run_capstone_eval.py --headless --num_episodes {episodes} "
    "--policy {policy} --env {environment} --checkpoint {policy.checkpoint} --output_dir {output_dir}"
)
ISAAC = replace(
    a_session("flat", "stairs"),
    command=fill(COMMAND, {"policy": "flat", "environment": "stairs", "policy.checkpoint": "~/ckpt/flat.pt"}),
    setup="source ~/miniconda3/etc/profile.d/conda.sh\nconda activate env_isaaclab\n",
    workdir=BashWord('"$HOME"/IsaacLab'),
    variables=(("OMNI_KIT_ACCEPT_EULA", BashWord("YES")),),
    gpus=1,
    results=ResultRules(("*_episodes.jsonl",), success="completion"),
    digest="d1",
)
PLAIN = replace(
    ISAAC,
    name="maze_pi0-5",
    policy="pi0.5 'new'",
    environment="maze",
    count=0,
    unit="step",
    setup="",
    workdir=None,
    variables=(),
    results=ResultRules(()),
    command=fill("train {policy} --seed 3", {"policy": "pi0.5 'new'"}),
)
WATCHED = replace(
    PLAIN,
    name="push_robust",
    policy="robust",
    environment="push",
    unit="episode",
    count=100,
    command=fill("evaluate --first {first_episode} --episodes {episodes} {output_dir}", {}),
    results=ResultRules(("*.jsonl",), episode="ep idx"),
    evidence=EvidenceRules(records=False, line="it's \\[saved\\]$", files=("summary.json", "b *.mp4")),
    failures=(("gpu_memory", "CUDA error: out of memory"), ("ignore", "tcmalloc's large alloc")),
    watch=WatchRules(stall_s=1200, max_s=7200, hang_s=0),
    counted=True,
    ranged=True,
    flag="smoke",
)
NOTIFY = Notify(
    fill("curl -d @- https://example.org/a?b=c", {}),
    BashWord('"$HOME"/tell'),
    (("A", BashWord("'b c'")),),
    NOTICE_KINDS,
    600.0,
)
AFTER = After(fill("python report.py {results_dir}", {}), "", None, ())
PLAN = Plan("4_env_test", (ISAAC, PLAIN), Limits(8, 8, 30.0, 2), (0,), AFTER, 60.0, "d")
SURVIVING = replace(
    PLAN, sessions=(ISAAC, WATCHED), retry=(RetryRule(Failure.LOST, 2, 0.0),), notify=NOTIFY, shipped="d2"
)

TEXTS = {
    **{f"{name}.sh": text for plan in (PLAN, SURVIVING) for name, text in scripts(plan)},
    "notify.sh": notify_script(NOTIFY),
    "run_parallel.sh": FRONT,
}


@pytest.mark.parametrize("name", TEXTS)
def test_the_script_is_the_golden_one(name: str) -> None:
    assert TEXTS[name] == (GOLDEN / name).read_text()


def test_bash_and_shellcheck_read_the_golden_scripts() -> None:
    for name in TEXTS:
        subprocess.run(["bash", "-n", GOLDEN / name], check=True)
        # the home of conda is not on this machine, and traps call what looks unreachable
        words = ["shellcheck", "--shell", "bash", "--exclude", "SC1090,SC1091,SC2317", GOLDEN / name]
        subprocess.run(words, check=True)


@pytest.mark.parametrize(
    ("servers", "value", "seen"),
    [
        ((("tiny", "tiny"),), "internal", "internal,127.0.0.1,localhost,::1"),
        ((("tiny", "tiny"),), "'a b,c'", "a b,c,127.0.0.1,localhost,::1"),
        ((("tiny", "tiny"),), "'*'", "*"),
        ((), "internal", "internal"),
    ],
)
def test_a_variable_of_the_grid_sends_no_request_for_a_server_of_this_machine_to_a_proxy(
    servers: tuple[tuple[str, str], ...], value: str, seen: str
) -> None:
    script = session_script(replace(PLAIN, servers=servers, variables=(("no_proxy", BashWord(value)),)))
    (line,) = (line for line in script.split("\n") if line.startswith("export no_proxy="))
    shown = subprocess.run(["bash", "-c", f'{line}; printf %s "$no_proxy"'], capture_output=True, text=True, check=True)
    assert shown.stdout == seen


@pytest.mark.parametrize(("given", "seen"), [("internal", "internal,127.0.0.1,localhost,::1"), ("", ""), ("'*'", "*")])
def test_nor_does_one_that_setup_sets(given: str, seen: str, tmp_path: Path) -> None:
    setup = f"export no_proxy={given} NO_PROXY=x,127.0.0.1\n"
    command = fill("printenv no_proxy NO_PROXY", {})
    served = replace(PLAIN, servers=(("tiny", "tiny"),), setup=setup, command=command)
    (tmp_path / "sessions/maze").mkdir(parents=True)
    script = tmp_path / "sessions/maze/session.sh"
    script.write_text(session_script(served))
    shown = subprocess.run(["bash", script], capture_output=True, text=True, check=True)
    assert shown.stdout.splitlines() == [seen or "127.0.0.1,localhost,::1", "x,127.0.0.1"]


def test_an_awkward_name_can_not_leave_the_comment(tmp_path: Path) -> None:
    evil = replace(PLAIN, policy="x $(touch pwned) `touch pwned`", environment="y'; touch pwned #")
    script = tmp_path / "session.sh"
    script.write_text("\n".join(session_script(evil).splitlines()[:8]))
    subprocess.run(["bash", script], check=True, cwd=tmp_path)
    assert not (tmp_path / "pwned").exists()
