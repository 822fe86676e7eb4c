"""What a login node says to the job scripts of a plan before anything is written, and what a person is told of that."""

from __future__ import annotations

from dataclasses import replace

import gridtext
import pytest
from monitor_stage import StagedHost

from comborun.cli.plan import show_on_slurm
from comborun.errors import HostError, UserError
from comborun.model.resources import HostFacts, SlurmOptions
from comborun.planner.laying import lay_out_on_slurm
from comborun.remote.slurm import check_taken, consult
from comborun.remote.transport import Completed

TEXT = "policies: [a]\nenvironments: [x]\nepisodes: 1\ncommand: run {episodes} {output_dir}\nresources: {gpus: 9}\n"
LOGIN = HostFacts("login1", "login1", 4, 0, (), "5", {}, ())
PLAN = lay_out_on_slurm(gridtext.grid(TEXT), LOGIN)
CONFIG = "ClusterName             = robots\nSLURM_VERSION = 22.05.8\n"
STARTS = "sbatch: Job 7 to start at 2026-11-22T06:09:56 using 2 processors on nodes n1 in partition main"
UNKNOWN = "sbatch: error: invalid partition specified: nope\nallocation failure: Invalid partition name specified"
TOO_MUCH = "allocation failure: Requested node configuration is not available"
UNKNOWN_OPTION = "sbatch: unrecognized option '--bogus'\nTry \"sbatch --help\" for more information"
WARNED = "sbatch: error: invalid number of nodes (-N 2-1)\nsbatch: Warning: can't run 1 processes on 2 nodes"


UP = "main*|up|idle|2\nurgent|up|down|1"


def host(*answers: tuple[int, str], config: str = CONFIG, nodes: str = UP) -> StagedHost:
    words = [config, nodes, *(word for code, said in answers for word in (str(code), said))]
    return StagedHost([Completed(0, "".join(f"{word}\0" for word in words).encode(), b"")], "login1")


@pytest.mark.parametrize(
    ("said", "nodes", "told"),
    [
        (UNKNOWN, UP, "invalid partition specified: nope"),
        (TOO_MUCH, UP, "Requested node configuration is not available"),
        (WARNED, UP, "invalid number of nodes"),
        (UNKNOWN_OPTION, UP, "unrecognized option '--bogus'"),
        (TOO_MUCH, "main*|up|idle~|2", "Requested node configuration is not available"),
        (TOO_MUCH, "", "Requested node configuration is not available"),
        (UNKNOWN, "main*|up|drain|2", "invalid partition specified: nope"),
    ],
)
def test_a_refusal_for_good_names_what_was_asked_for_and_says_why_whatever_nodes_are_away(
    said: str, nodes: str, told: str
) -> None:
    transport = host((0, STARTS), (1, said), nodes=nodes)
    with pytest.raises(HostError) as refused:
        check_taken(transport, PLAN, consult(transport, PLAN))
    assert refused.value.message.startswith("Slurm on login1 would not take these jobs:\n  a task with 9 GPUs: ")
    assert told in refused.value.message
    assert "sinfo" in refused.value.hint


@pytest.mark.parametrize(
    ("nodes", "why"),
    [
        ("main*|up|drain|2", "while 2 nodes take no jobs"),
        ("main*|up|idle|3\nmain*|up|idle*|1", "while 1 node takes no jobs"),
        ("main*|down|idle|2", "while the partition main takes no jobs"),
    ],
)
def test_what_waits_for_nodes_that_are_away_is_no_refusal(nodes: str, why: str) -> None:
    transport = host((0, STARTS), (1, TOO_MUCH), nodes=nodes)
    (doubt,) = check_taken(transport, PLAN, consult(transport, PLAN))
    assert doubt == f"a task with 9 GPUs can't start now, {why}: Requested node configuration is not available"


def test_only_the_nodes_of_the_partitions_that_a_job_asks_for_count() -> None:
    for partition, refused in (("urgent", False), ("main", True), ("main,urgent", False)):
        plan = replace(PLAN, slurm=SlurmOptions((f"--partition={partition}",)))
        cluster = consult(host((0, STARTS), (1, TOO_MUCH)), plan)
        assert cluster.arrays[0].refused is refused


def test_a_plan_that_slurm_refuses_ends_with_what_it_refuses(capsys: pytest.CaptureFixture[str]) -> None:
    grid = gridtext.grid(TEXT)
    refused = show_on_slurm(host((0, STARTS), (1, TOO_MUCH)), PLAN, grid)
    assert "a task with 9 GPUs: Requested node configuration" in refused.message
    assert "refused: Requested node configuration" in capsys.readouterr().out
    assert show_on_slurm(host((0, STARTS), (1, TOO_MUCH), nodes="main*|up|drain|2"), PLAN, grid) is None
    assert "can't start now, while 2 nodes take no jobs" in capsys.readouterr().out
    assert show_on_slurm(host((0, STARTS), (0, STARTS)), PLAN, grid) is None


def test_a_slurm_that_hangs_is_not_taken_for_a_refusal_of_the_request() -> None:
    transport = host((0, STARTS), (124, ""))
    with pytest.raises(HostError, match="no answer within 20 s"):
        check_taken(transport, PLAN, consult(transport, PLAN))


@pytest.mark.parametrize(
    ("name", "code", "message", "hint"),
    [
        ("local", 69, "there is no sbatch on this machine", "--host LOGIN_NODE"),
        ("login1", 69, "there is no sbatch on login1", "ssh login1 command -v sbatch"),
        ("login1", 75, "Slurm does not answer on login1", "Unable to contact"),
    ],
)
def test_a_host_without_slurm_is_told_from_one_whose_slurm_is_down(
    name: str, code: int, message: str, hint: str
) -> None:
    silent = StagedHost([Completed(code, b"", b"Unable to contact slurm controller\n" if code == 75 else b"")], name)
    with pytest.raises(UserError) as refused:
        consult(silent, PLAN)
    assert (refused.value.message, refused.value.exit_code) == (message, 3)
    assert hint in refused.value.hint
