"""Which variables of a shell a run records, and how two shells differ."""

from __future__ import annotations

from comborun.rules.environment import difference, recorded
from comborun.words import say

SHELL = {
    "PATH": "/a:/usr/bin",
    "VIRTUAL_ENV": "/a",
    "CONDA_PREFIX": "/c",
    "CONDA_SHLVL": "2",
    "CONDA_API_TOKEN": "s3cret",
    "HF_TOKEN": "s3cret",
    "LD_LIBRARY_PATH": "",
}


def test_only_what_decides_which_programs_run_is_recorded_and_no_secret() -> None:
    assert recorded(SHELL) == {"PATH": "/a:/usr/bin", "VIRTUAL_ENV": "/a", "CONDA_PREFIX": "/c"}


def test_a_difference_names_what_came_and_what_went() -> None:
    other = {**SHELL, "PATH": "/b:/usr/bin", "VIRTUAL_ENV": "/b", "LD_LIBRARY_PATH": "/lib"}
    other.pop("CONDA_PREFIX")
    found = difference(SHELL, other)
    assert found
    assert found.fields["changed"] == {
        "CONDA_PREFIX": ["/c", ""],
        "LD_LIBRARY_PATH": ["", "/lib"],
        "PATH": ["/a:/usr/bin", "/b:/usr/bin"],
        "VIRTUAL_ENV": ["/a", "/b"],
    }
    assert "PATH has /b and lacks /a" in say(found)
    assert difference(SHELL, {**SHELL, "HF_TOKEN": "other"}) is None
