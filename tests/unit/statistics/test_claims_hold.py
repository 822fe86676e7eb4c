"""The cases of benchmarks/claims.py with few runs: what the report promises, simulated with its own functions."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest
from rounds import ALL, rounds

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "claims.py"
RUNS = rounds(40)


def loaded() -> ModuleType:
    spec = importlib.util.spec_from_file_location("benchmark_of_claims", SCRIPT)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


CLAIMS = loaded()


PROMISED = [
    one for one in CLAIMS.cases() if one.promise is not None and (ALL or "2 x 200 episodes of 200" not in one.name)
]


@pytest.mark.parametrize("case", PROMISED, ids=lambda one: one.name)
def test_what_is_promised_holds(case: object) -> None:
    found = CLAIMS.simulate(case, RUNS)
    assert found.holds, f"{found.rate} in {RUNS} runs"
