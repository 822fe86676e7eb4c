"""The cases of benchmarks/claims.py with few runs: what the report promises, simulated with its own functions."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "claims.py"


def loaded() -> ModuleType:
    spec = importlib.util.spec_from_file_location("benchmark_of_claims", SCRIPT)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


CLAIMS = loaded()


@pytest.mark.parametrize("case", [one for one in CLAIMS.cases() if one.promise is not None], ids=lambda one: one.name)
def test_what_is_promised_holds(case: object) -> None:
    found = CLAIMS.simulate(case, 60)
    assert found.holds, f"{found.rate} in 60 runs"


def test_all_environments_together_show_what_none_of_them_does() -> None:
    one, within = (
        CLAIMS.simulate(case, 60).rate for case in CLAIMS.cases() if "found" in case.name and "half alike" in case.name
    )
    assert one > 0.4 > 0.3 > within


def test_a_metric_shows_a_gap() -> None:
    (rate,) = (CLAIMS.simulate(case, 60).rate for case in CLAIMS.cases() if "found by a metric" in case.name)
    assert rate > 0.3
