"""comborun in a notebook, and as a module: launch, watch, read, compare, mend."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from desk import Desk
from nbclient import NotebookClient

HEAVY = {"click", "rich", "pydantic", "paramiko", "numpy", "textual", "starlette", "comborun.api"}
PROGRAM = """
import json, os, sys, time
policy, environment, out, count = sys.argv[1:]
if (policy, environment) == ("poor", "field") and not os.path.exists(os.path.expanduser("~/mended")):
    import a_module_that_is_not_there
while not os.path.exists(os.path.expanduser("~/go")):
    time.sleep(0.05)
with open(os.path.join(out, "rows.jsonl"), "w") as rows:
    for n in range(int(count)):
        rows.write(json.dumps({"episode": n, "seed": n, "success": policy == "good", "video": f"{n}.mp4"}) + "\\n")
        rows.flush()
"""
CELLS = [
    "import comborun",
    "run = comborun.launch('grid.yaml', set={'episodes': 8})\nrun",
    "watching = run.watch()\nwatching",
    "import pathlib\npathlib.Path('~/go').expanduser().touch()\nlast = watching.wait()",
    "print(last.finished, dict(last.counts))",
    "[one] = run.explain()\nprint(one.session, one.outcome, one.last_lines[-1])",
    "print([(cause.sessions, cause.failure) for cause in run.causes().causes])",
    "frame = run.episodes().to_pandas()\nprint(frame.groupby(['policy', 'environment']).success.agg(['size', 'mean']))",
    "found = run.compare('poor', 'good')\nprint([(e.environment, e.difference, e.better) for e in found.environments])",
    "pathlib.Path('~/mended').expanduser().touch()\nprint(run.retry(failed=True).done)",
    "print(dict(run.wait().counts))",
    "last = run.status()\nlast",
    "try:\n    run.compare('poor', 'nobody')\nexcept comborun.UserError as error:\n    print(error.code)",
]


@pytest.fixture
def program(desk: Desk) -> str:
    path = desk.home / "evaluate.py"
    path.write_text(PROGRAM)
    return f"{sys.executable} '{path}' {{policy}} {{environment}} {{output_dir}} {{episodes}}"


def outputs(cell: Any) -> list[str]:
    """What a cell shows: text, or HTML where there is any."""
    shown = []
    for one in cell.outputs:
        assert one.output_type != "error", one
        data = one.get("data", {})
        shown.append(one.text if one.output_type == "stream" else data.get("text/html") or data["text/plain"])
    return shown


@pytest.mark.filterwarnings("ignore")
def test_a_notebook_runs_watches_mends_and_compares(
    desk: Desk, program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.grid(command=program, limits="{parallel: 4}")
    for name, value in desk.environment.items():
        monkeypatch.setenv(name, value)
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    NotebookClient(book, timeout=90, kernel_name="python3", resources={"metadata": {"path": str(desk.home)}}).execute()
    _, _, watching, _, waited, explained, causes, frame, compared, retried, again, status, refused = map(
        outputs, book.cells
    )
    assert "24 of 32 episodes; finished" in watching[0], "it was updated after its cell had ended"
    assert "field</td>" in watching[0]
    assert waited == ["True {'succeeded': 3, 'failed': 1}\n"]
    assert explained == ["field_poor failed ModuleNotFoundError: No module named 'a_module_that_is_not_there'\n"]
    assert causes == ["[(('field_poor',), 'error')]\n"]
    assert [line.split() for line in frame[0].splitlines()[2:]] == [
        ["good", "field", "8", "1.0"], ["maze", "8", "1.0"], ["poor", "maze", "8", "0.0"],
    ]  # fmt: skip
    assert compared == ["[('maze', -1.0, 'good')]\n"]
    assert retried == ["True\n"]
    assert again == ["{'succeeded': 4}\n"]
    assert "32 of 32 episodes" in status[0]
    assert refused == ["unknown_policy\n"]


def test_importing_it_loads_nothing_else() -> None:
    script = "import json, sys, comborun; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert not HEAVY & set(json.loads(done.stdout))
