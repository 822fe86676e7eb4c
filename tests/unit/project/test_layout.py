"""The two halves of the program know the same file names."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

from comborun.layout import AttemptLayout, RunLayout

CHECKOUT = Path(__file__).parents[3]


def test_names_are_below_the_run_directory() -> None:
    layout = RunLayout(PurePosixPath("/srv/comborun/grid-1"))
    assert str(layout.attempt("stairs_flat", 2).end) == "/srv/comborun/grid-1/sessions/stairs_flat/attempt-2/end"
    assert str(layout.plan(1)) == "/srv/comborun/grid-1/plan-1.json"


def test_every_name_stands_in_the_documented_layout() -> None:
    page = (CHECKOUT / "docs/architecture.md").read_text()
    section = page.split("## The run directory")[1].split("```")[1]
    for cls in (RunLayout, AttemptLayout):
        for name, member in vars(cls).items():
            if isinstance(member, property):
                leaf = getattr(cls(PurePosixPath("x")), name).name
                assert re.search(rf"(^|/|\s){re.escape(leaf)}(/|\s)", section, re.MULTILINE), f"{cls.__name__}.{name}"


def test_the_box_half_uses_the_same_names() -> None:
    library = "\n".join(path.read_text() for path in (CHECKOUT / "scripts/lib").rglob("*.sh"))
    attempt = AttemptLayout(PurePosixPath())
    for path in (attempt.claim, attempt.grant, attempt.begin, attempt.end, attempt.log, attempt.stop):
        assert re.search(rf"/{path.name}\b", library), path.name
    run = RunLayout(PurePosixPath())
    for path in (run.queue, run.policy, run.slots, run.journal, run.usage, run.done):
        assert str(path) in library, path
