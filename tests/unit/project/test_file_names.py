"""File names of a run stand in `rules/names.py`, and nowhere else."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from structure import CHECKOUT, modules

from comborun.rules.names import AttemptLayout, RunLayout

ITS_OWN = {
    "comborun.rules.names",
    "comborun.generate.compose",  # a folder for Docker Compose, which is no run
    "comborun.generate.script",  # whole texts of bash
    "comborun.remote.program",  # whole texts of bash
}
OTHER_LOCKS = {"comborun.host.admission.leases", "comborun.host.doctor.machine"}
FOLDERS = ("dispatch", "sessions", "servers", "slurm")
NUMBERED = ("attempt-", "plan-", "batch-", "array-", "window-")


def names() -> list[str]:
    of_kinds = [getattr(kind(""), name) for kind in (RunLayout, AttemptLayout) for name in vars(kind) if name[0] != "_"]
    paths = [path for path in of_kinds if isinstance(path, str)]
    return sorted({re.escape(path.rpartition("/")[2]) for path in paths} - {"out"})


NAMES = "|".join(names())
BY_HAND = re.compile(rf"(^|/)({'|'.join(NUMBERED)})|(^|/)({'|'.join(FOLDERS)})/|/({NAMES})$|^lib/|^/?out/")
LOOSELY = re.compile(rf"({'|'.join(NUMBERED)})|({'|'.join(FOLDERS)}|lib|out)/|/({NAMES})\b")
"""what a module has that is worth parsing"""


def built(module: Path) -> set[str]:
    """Texts in a module that are a part of a run's file name."""
    text = module.read_text("utf-8")
    if not LOOSELY.search(text):
        return set()
    tree = ast.parse(text)
    notes = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    texts = {node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in notes}
    return {node.value for node in texts if isinstance(node.value, str) and BY_HAND.search(node.value)}


def test_no_other_module_builds_a_file_name_of_a_run() -> None:
    found = {name: built(path) for name, path in modules(CHECKOUT).items() if name not in ITS_OWN}
    left = {name: texts - ({"/lock"} if name in OTHER_LOCKS else set()) for name, texts in found.items()}
    assert {name: texts for name, texts in left.items() if texts} == {}


def test_a_name_that_is_built_by_hand_is_found(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(
        'a = f"{at}/claim"\nb = f"{run}/dispatch/quarantine"\nc = "attempt-" + n\nd = f"sessions/{name}/x"\n'
        'e = f"{run}/plan-{n}.json"\nfine = "it has ended"\n'
    )
    assert built(module) == {"/claim", "/dispatch/quarantine", "attempt-", "sessions/", "/plan-"}
