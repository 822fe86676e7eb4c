"""What fits at once, and when all ends: by the formula that the host admits by."""

from __future__ import annotations

import math
from dataclasses import replace

import gridtext
import pytest
from hypothesis import given
from hypothesis import strategies as st

from comborun.errors import UserError
from comborun.host.system.machine import allocate_cores
from comborun.model.plan import Plan
from comborun.model.resources import HostFacts
from comborun.planner.knowledge import NOTHING_KNOWN, Knowledge, Pace, pace_key
from comborun.planner.laying import lay_out
from comborun.planner.packing import Job, Shortage, Stage, fits, outlook, simulate, stage
from comborun.rules.room.capacity import Capacity, Card, Request
from comborun.rules.room.waits import WaitFor

GRID = "policies: [a, b]\nenvironments: [x, y, z]\nepisodes: 10\ncommand: run {policy} {episodes} {output_dir}\n"


def host(*cards: Card, cpus: int = 64, memory: int = 256 << 30, available: int | None = None) -> HostFacts:
    gpus = tuple(card.index for card in cards)
    return HostFacts("h", "h", cpus, memory, gpus, "5", {"tmux": "3"}, (), cards=cards, available=available)


def gpus(memory: dict[int, int | None], stagger: float = 0.0) -> Stage:
    known = {gpu: mib for gpu, mib in memory.items() if mib is not None}
    return Stage(Capacity(tuple(memory), gpu_memory=known), 8, stagger)


def laid(text: str, on: HostFacts, known: Knowledge = NOTHING_KNOWN) -> Plan:
    return lay_out(gridtext.grid(GRID + text), on, known=known)


@pytest.mark.parametrize(("total", "fitting"), [(81559, 9), (81920, 9), (95830, 12), (98304, 12)])
@pytest.mark.parametrize("used", [39 * 1024, 0])
def test_a_job_of_39_gib_counts_once_whether_it_runs_already_or_not(total: int, used: int, fitting: int) -> None:
    text = "resources: {gpus: 1, gpu_memory: 4.5 GiB}\nreserve: {gpu_memory: 39 GiB}\nlimits: {parallel: 64}\n"
    on = host(Card(0, "GPU-0", "H100", total, used))
    plan = laid(text, on)
    count, lack = fits([one.resources for one in plan.sessions], stage(plan, on))
    assert count == fitting
    assert lack
    assert lack.waits_for == WaitFor.GPU_MEMORY


def test_a_session_goes_to_the_gpu_with_the_most_memory_free_as_on_the_host() -> None:
    small, large = (Job(5, Request(1, gpu_memory=size)) for size in (8000, 30000))
    capacity = gpus({0: 10000, 1: 35000})
    assert simulate([small, large], capacity).ends == (5, 10)  # the small one is where the large one has to go
    assert simulate([large, small], capacity).ends == (5, 5)
    assert simulate([small] * 3, gpus({0: 20000, 1: None})).most == 3


def test_starts_are_spaced_on_each_gpu_and_servers_hold_theirs_all_the_time() -> None:
    tasks = [Job(10, Request(1, gpu_memory=4)) for _ in range(4)]
    capacity = gpus({0: 100, 1: 100}, stagger=3)
    assert simulate(tasks, capacity).ends == (10, 10, 13, 13)
    beside = replace(gpus({0: 10}), servers=(Request(1, gpu_memory=5),))
    assert simulate(tasks, beside).most == 1
    assert simulate([Job(1, Request(1, gpu_memory=6))], beside).makespan == math.inf


REQUESTS = st.builds(
    Request,
    gpus=st.integers(0, 2),
    cpus=st.integers(0, 6),
    memory=st.sampled_from([0, 10, 40]),
    gpu_memory=st.sampled_from([0, 20, 45]),
    tokens=st.sampled_from([(), ("ray",)]),
    group=st.just("g"),
    per_host=st.sampled_from([0, 0, 3]),
)
JOBS = st.lists(st.builds(Job, st.integers(1, 30).map(float), REQUESTS), min_size=1, max_size=25)


@given(JOBS)
def test_one_after_another_is_never_sooner_than_side_by_side(jobs: list[Job]) -> None:
    on = Stage(Capacity((0, 1), cpus=8, memory=100, gpu_memory={0: 100, 1: 100}), 6)
    played = simulate(jobs, on)
    assert played.makespan <= sum(job.seconds for job in jobs)
    assert played.most <= on.slots


def test_a_gpu_that_others_use_is_no_gpu_on_which_all_sessions_run() -> None:
    grid = gridtext.grid(GRID + "resources: {gpus: 1, gpu_memory: 50 GiB}\n")
    on = host(Card(0, "", "H100", 80000, 41000))
    plan = lay_out(grid, on)
    seen = outlook(plan, grid, on, NOTHING_KNOWN)
    assert (len(seen.never), seen.at_once, bool(seen.limited)) == (6, 0, True)


@pytest.mark.parametrize(("cpus", "fitting"), [("0.1", 20), ("0.25", 8), ("0.7", 2), ("1.5", 1), ("2", 1)])
def test_sessions_of_a_part_of_a_core_share_it(cpus: str, fitting: int) -> None:
    on = host(cpus=2)
    plan = laid(f"resources: {{cpus: {cpus}}}\nlimits: {{parallel: 64}}\n", on)
    count, lack = fits([one.resources for one in plan.sessions] * 4, stage(plan, on))
    assert count == fitting
    assert lack
    assert lack.waits_for == WaitFor.CPUS
    assert {one.threads for one in plan.sessions} == {max(1, int(float(cpus)))}
    assert allocate_cores((0, 1), (), float(cpus)) == ((0, 1) if cpus == "2" else ())


@pytest.mark.parametrize("cpus", ["0.0", "-0.5", "0.1234", "0.0001", ".5", '"0.5"'])
def test_other_parts_of_a_core_are_refused(cpus: str) -> None:
    with pytest.raises(UserError) as caught:
        laid(f"resources: {{cpus: {cpus}}}\n", host(cpus=2))
    assert ("not a number of cores" in str(caught.value)) is (cpus not in ("0.0", '"0.5"'))


def test_an_outlook_gives_no_number_that_rests_on_a_guess() -> None:
    on = host(cpus=4)
    grid = gridtext.grid(GRID)
    plan = lay_out(grid, on)
    seen = outlook(plan, grid, on, NOTHING_KNOWN)
    assert (seen.makespan, seen.sequential) == (None, None)
    assert len(seen.unknown) == 6
    paces = {pace_key(one): Pace(2.0, 5.0, memory=1000) for one in plan.sessions if one.environment != "z"}
    half = Knowledge("measured", paces, {1: 1.0, 2: 1.6}, 2)
    seen = outlook(lay_out(grid, on, known=half), grid, on, half)
    assert seen.makespan is None
    assert seen.unknown == ("a in z", "b in z")
    whole = Knowledge("measured", {pace_key(one): Pace(2.0, 5.0, 1000) for one in plan.sessions}, half.speeds, 2)
    seen = outlook(lay_out(grid, on, known=whole), grid, on, whole)
    assert (seen.at_once, seen.limited) == (2, "CPUs")
    assert seen.sequential == 150
    assert seen.makespan == 96  # three times 25 s, 2 / 1.6 as long beside another, up to whole seconds
    assert seen.filled == ("memory 1152 MiB", "cpus 2 (its share of the cores)")


def test_what_limits_a_grid_is_what_most_of_those_that_wait_lack() -> None:
    """The first one that waits may lack what only a few others need."""
    on = Stage(Capacity((), cpus=4), 8)
    alone, others = Job(1, Request(cpus=1, tokens=("display-1",))), Job(1, Request(cpus=1))
    assert simulate([alone, alone, *[others] * 9], on).short_of == Shortage(WaitFor.CPUS, "")
    assert simulate([alone, alone, alone, others], on).short_of == Shortage(WaitFor.TOKEN, "display-1")
    assert simulate([alone, others], on).short_of is None
