"""What stands around sessions: `display`, `threads`, `pin`, warming up, and placeholders in variables."""

from __future__ import annotations

import json
import re
from typing import Any

import gridtext
import pytest

from comborun.errors import UserError
from comborun.generate.bundle import queue, session_manifest
from comborun.generate.run_scripts import after_script, session_script
from comborun.model.plan import Plan, Session
from comborun.model.resources import Display

AXES = """\
policies: {flat: {lr: 1e-3}, rough: {lr: 1e-4}}
environments: [grass, stairs]
episodes: 10
"""
COMMAND = "command: python e.py --episodes {episodes} --out {output_dir} --device cuda:{gpu}\n"


def plan(text: str) -> Plan:
    command = "" if "command:" in text else COMMAND
    resources = "" if "resources" in text else "resources: {gpus: 1}\n"
    return gridtext.plan(AXES + command + resources + text, gridtext.host(4, cpus=32))


def first(text: str) -> Session:
    return plan(text).sessions[0]


def data(session: Session) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(session_manifest(session))
    return told


@pytest.mark.parametrize(
    ("written", "display", "word"),
    [
        ("{xvfb: 640x480}", Display("xvfb", geometry="640x480x24"), "xvfb"),
        ("xvfb", Display("xvfb"), "xvfb"),
        ('":1"', Display("1"), ":1"),
        (
            '{0: ":8", 1: ":9", 2: ":8", 3: ":10"}',
            Display(by_gpu=((0, 8), (1, 9), (2, 8), (3, 10))),
            "0=:8 1=:9 2=:8 3=:10",
        ),
    ],
)
def test_a_display_is_read_kept_and_handed_to_the_script(written: str, display: Display, word: str) -> None:
    session = first(f"display: {written}\n")
    assert session.display == display
    assert data(session)["display"]["word"] == word
    assert "export DISPLAY=$COMBORUN_DISPLAY" in session_script(session)
    whole = plan(f"display: {written}\n")
    assert Plan.from_json(whole.to_json()) == whole


def test_a_display_that_is_there_has_one_session_at_a_time_and_others_need_no_turn() -> None:
    assert first('display: ":1"\n').request.tokens == ("display-1",)
    both = first('resources: {gpus: 1, exclusive: ray}\ndisplay: ":0"\n')
    assert both.request.tokens == ("ray", "display-0")
    assert first("display: xvfb\n").request.tokens == ()
    assert first("display: none\n").display is None


def test_a_gpu_without_an_x_server_is_refused_unless_it_is_never_granted() -> None:
    some = "display: {0: ':8', 2: ':9'}\n"
    with pytest.raises(UserError, match="no X server for GPU 1, 3") as refused:
        plan(some)
    assert refused.value.hint == "add it, or keep to the others: use_gpus: [0, 2]"
    assert plan(some + "use_gpus: [0, 2]\n").gpus == (0, 2)


@pytest.mark.parametrize(
    ("text", "threads"),
    [
        ("resources: {gpus: 1}", 8),  # four at once, each with a GPU of its own
        ("resources: {gpus: 1}\nlimits: {per_gpu: 4, parallel: 2}", 16),
        ("threads: none", 0),
        ("threads: none\noverrides: [{when: {policy: flat}, threads: 2}]", 2),
    ],
)
def test_a_session_starts_as_many_threads_as_it_has_cores(text: str, threads: int) -> None:
    command = "command: python e.py --episodes {episodes} --out {output_dir}\n"
    session = plan(command + text + "\n").sessions[0]
    assert session.threads == threads
    assert (f"export COMBORUN_THREADS={threads}" in session_script(session).splitlines()) == bool(threads)


VARIABLES = """\
variables:
  MUJOCO_EGL_DEVICE_ID: "{egl_device}"
  WHERE: ~/x/{session}/{output_dir}
  LR: "{policy.lr}"
  JSON: '{"a": {"gpu": {gpu}}}'
  JINJA: "{{gpu}}"
  OTHER: "{nothing} $HOME"
  X: "{display}"
"""


def test_variables_have_placeholders_and_any_other_brace_is_text() -> None:
    session = first(VARIABLES)
    assert dict(session.variables) == {
        "MUJOCO_EGL_DEVICE_ID": '"$COMBORUN_EGL_DEVICE"',
        "WHERE": '"$HOME"/x/grass_flat/"$COMBORUN_OUTPUT_DIR"',
        "LR": "1e-3",
        "JSON": """'{"a": {"gpu": {gpu}}}'""",
        "JINJA": "'{{gpu}}'",
        "OTHER": "'{nothing} $HOME'",
    }
    script = session_script(session)
    assert data(session)["draws"] == ["egl"]
    assert script.index('MUJOCO_EGL_DEVICE_ID="$COMBORUN_EGL_DEVICE"') > script.index("export COMBORUN_EGL_DEVICE")


@pytest.mark.parametrize(
    ("text", "device"),
    [
        ("variables: {MUJOCO_GL: egl}", '"$COMBORUN_EGL_DEVICE"'),
        ('variables: {MUJOCO_GL: egl, MUJOCO_EGL_DEVICE_ID: "3"}', "3"),
        ("variables: {MUJOCO_GL: osmesa}", None),
        ("variables: {MUJOCO_GL: egl}\nresources: {gpus: 0}\ncommand: run", None),
    ],
)
def test_mujoco_draws_on_the_granted_gpu_unless_the_grid_says_otherwise(text: str, device: str | None) -> None:
    session = plan(text + "\n").sessions[0]
    assert dict(session.variables).get("MUJOCO_EGL_DEVICE_ID") == device
    assert ("draws" in data(session)) == (device == '"$COMBORUN_EGL_DEVICE"')


def test_a_variable_that_nothing_fills_is_not_set() -> None:
    names = [name for name, _ in plan(VARIABLES + "resources: {gpus: 0}\ncommand: run\n").sessions[0].variables]
    assert names == ["WHERE", "LR", "JSON", "JINJA", "OTHER"]
    after = plan(VARIABLES + "after: report {results_dir}\n").after
    assert [name for name, _ in after.variables] == ["JSON", "JINJA", "OTHER"]
    assert "COMBORUN_EGL" not in after_script(after)


def test_sessions_of_one_program_share_a_kind_whatever_their_combo() -> None:
    texts = [
        "command: ./isaaclab.sh -p eval.py {environment} {policy}\n",
        "command: python eval.py {environment} {policy}\n",
        "command: python other.py {environment} {policy}\n",
        "command: python eval.py {environment}\nsetup: conda activate b\n",
    ]
    kinds = [[json.loads(row)["kind"] for row in queue(plan(text)).splitlines()] for text in texts]
    assert all(len(set(found)) == 1 and re.fullmatch(r"[0-9a-f]{8}", found[0]) for found in kinds)
    assert len({found[0] for found in kinds}) == len(texts)
