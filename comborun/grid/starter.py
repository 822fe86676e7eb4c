"""The grids that `combo init` writes: complete, and with comments."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from comborun.errors import UserError

if TYPE_CHECKING:
    from comborun.grid.presets import Preset

_STARTER = """\
# What to evaluate: every policy in every environment. docs/grid.md explains all keys.
#   combo check grid.yaml     finds every mistake
#   combo try grid.yaml       runs one episode of one combo, and shows which results count
#   combo run grid.yaml       launches, watches, reports
name: NAME

# host: h100                        # an ssh host; without it, sessions run on this machine

policies:                           # a list, or a map with attributes for the command
  flat: {checkpoint: ~/checkpoints/flat.pt}
  rough: {checkpoint: ~/checkpoints/rough.pt}
environments: [friction, grass, boulder, stairs]
# exclude: [{policy: flat, environment: stairs}]

episodes: 100                       # of every combo
seed: 1000

# Your program with its own flags. Split once, as a shell would; then {...} is filled in. No shell reads it.
command: >-
  python evaluate.py --policy {policy} --checkpoint {policy.checkpoint} --env {environment}
  --episodes {episodes} --seed {seed} --output-dir {output_dir}
# workdir: ~/my_project             # where it runs; on this machine this file's folder unless given
# setup: |                          # bash, before the command; or `setup: source ~/my_venv/bin/activate`
#   source ~/miniconda3/etc/profile.d/conda.sh
#   conda activate my_env
# variables: {PYTHONUNBUFFERED: "1"}

# resources: {gpus: 1}              # GPUs of one session
limits:
  parallel: 4                       # sessions at once
  # per_gpu: 2                      # of them on one GPU
  # stagger: 30 s                   # between two starts
  # stall_after: 20 min             # end what makes no progress

# Read unless you say otherwise: one JSON object a line and an episode, such as {"episode": 0, "success": true}.
# For other files and for printed results, `combo try` shows the line that reads them.
results: {files: "**/*.jsonl", success: success}

# after: python report.py --input {results_dir}     # once, on the host, when all has ended
# notify: python tell_me.py         # gets JSON when the run ends, fails or stalls, watched or not
"""


def starter_grid(name: str) -> str:
    """The text of a starter grid; it passes `combo check`."""
    return _STARTER.replace("name: NAME", f"name: {quoted(name)}", 1)


def quoted(text: str, plain: str = "") -> str:
    """A YAML scalar for this text. Characters of `plain` need no quotes, like those of identifiers."""
    bare = "".join(character for character in text if character not in plain)
    needed = not (bare.isascii() and bare.isidentifier()) or text.lower() in {"null", "true", "false"}
    return json.dumps(text, ensure_ascii=False) if needed else text


_HEAD = """\
# {summary}
#   combo presets show {name}   explains it: what it needs, and what must be known
#   combo check grid.yaml     finds every mistake
#   combo try grid.yaml       runs one episode of one combo, and shows which results count
#   combo run grid.yaml       launches, watches, reports
name: {grid}
preset: {wanted}

# host: h100                        # an ssh host; without it, sessions run on this machine
"""
_TAIL = """
# What the preset says. A key of yours takes its place; maps such as `variables`, `limits` and `results` are merged.
"""


def preset_starter(preset: Preset, wanted: str, name: str) -> str:
    """The text of a starter grid for a preset; it passes `combo check`. `wanted` is the preset as the user named it."""
    if preset.about.kind == "server":
        raise UserError(
            f"`{preset.name}` is a model server, which evaluates nothing",
            f"`combo presets show {preset.name}` tells how it is started",
        )
    head = _HEAD.format(
        summary=preset.about.summary, name=preset.name, grid=quoted(name), wanted=quoted(wanted, plain="-./~")
    )
    return (
        head
        + preset.about.starter.rstrip("\n")
        + "\n"
        + _TAIL
        + "".join(f"# {line}\n" if line else "#\n" for line in preset.settings_text.splitlines())
    )
