"""The grid that `combo init --preset` writes: what a user has to say, and below it, commented, what the preset says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from comborun.errors import UserError
from comborun.grid.starter import quoted

if TYPE_CHECKING:
    from comborun.grid.layering import Preset

_HEAD = """\
# {summary}
#   combo presets show {name}   explains it: what it needs, and what must be known
#   combo check grid.yaml     finds every mistake
#   combo run grid.yaml       launches, watches, reports
name: {grid}
preset: {wanted}

# host: h100                        # an ssh host; without it, sessions run on this machine
"""
_TAIL = """
# What the preset says. A key of yours takes its place; maps such as `variables`, `limits` and `results` are merged.
"""


def preset_starter(preset: Preset, wanted: str, name: str) -> str:
    """The text of a grid called `name` that passes `combo check`; `wanted` is the preset as the user named it."""
    if preset.about.kind == "server":
        raise UserError(
            f"`{preset.name}` is a model server, which evaluates nothing",
            f"`combo presets show {preset.name}` tells how it is started",
        )
    head = _HEAD.format(
        summary=preset.about.summary, name=preset.name, grid=quoted(name), wanted=quoted(wanted, plain="-./~")
    )
    return head + preset.about.starter.rstrip("\n") + "\n" + _TAIL + _commented(settings_text(preset))


def settings_text(preset: Preset) -> str:
    """The keys of a grid that a preset sets, as they are written there, comments and all."""
    lines = preset.source.text.splitlines()
    first = min((key.place.line for key in preset.source.root.written.values()), default=len(lines) + 1)
    kept = [text for number, text in enumerate(lines, 1) if number >= first and number not in preset.about_lines]
    return "\n".join(kept).strip("\n") + "\n" if kept else ""


def _commented(text: str) -> str:
    return "".join(f"# {line}\n" if line else "#\n" for line in text.splitlines())
