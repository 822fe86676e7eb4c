"""A request that no wait will meet is refused when the grid is planned, with the numbers."""

from __future__ import annotations

from dataclasses import replace

import pytest
from gridtext import plan

from comborun.errors import UserError
from comborun.model.resources import HostFacts
from comborun.rules.room.capacity import Card

H100 = HostFacts(
    host="h100", hostname="h100", cpus=32, memory=256 << 30, gpus=(0, 1), bash="5.2",
    multiplexers={"tmux": "3.4", "screen": ""}, missing=(),
    cards=(Card(0, total=81559), Card(1, total=24576)),
)  # fmt: skip
GRID = """
policies: [flat]
environments: [stairs]
command: python evaluate.py {policy} {environment}
"""

NEVER = {
    "every one": ("resources: {cpus: 1}\nreserve: {cpus: 32}", "it asks for 1 core, and may use 0"),
    "memory": ("resources: {memory: 300 GiB}", "it asks for 307200 MiB of memory; the host has 262144, reserved 0"),
    "gpu": (
        "resources: {gpus: 1, gpu_memory: 42 GiB}\nreserve: {gpu_memory: 39 GiB}",
        "GPU 0 has 81559, GPU 1 has 24576; `reserve` keeps 39936, and 128 always stay free",
    ),
}


@pytest.mark.parametrize("case", NEVER)
def test_what_can_never_start_is_refused_with_the_numbers(case: str) -> None:
    text, reason = NEVER[case]
    with pytest.raises(UserError) as refusal:
        plan(GRID + text, H100)
    message = str(refusal.value.message)
    assert message.startswith("h100 can never start this:\n  stairs_flat: ")
    assert message.endswith(reason)


def test_what_fits_just_so_or_can_not_be_told_is_planned() -> None:
    just_so = "resources: {gpus: 1, gpu_memory: 41495 MiB, cpus: 28}\nreserve: {gpu_memory: 39 GiB, cpus: 4}"
    assert plan(GRID + just_so, H100)
    silent = replace(H100, cards=(Card(0), Card(1)), memory=0)
    assert plan(GRID + "resources: {gpus: 2, gpu_memory: 300 GiB, memory: 900 GiB}", silent)
