"""What the program of a session gets: its folder, files, links and container, and its variables. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from comborun.command import FILLED, PLAN_TIME, START_TIME, escaped, file_word, fill, fillable, placeholders, word
from comborun.errors import UserError
from comborun.resources import Around, BashWord, Container, Links
from comborun.servers import ASKED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from comborun.grid import Grid, SettingKeys
    from comborun.grid.program import WorkdirKeys
    from comborun.resources import HostFacts


def around_of(settings: SettingKeys, grid: Grid, host: HostFacts, values: Mapping[str, str]) -> Around:
    """Files, links, ranks and container; `values` holds the plan-time placeholders of the combo."""
    links, box = host_folder(settings.workdir.link_from, grid, host), settings.container
    container = (
        None
        if box is None
        else Container(
            image=word(box.image or "", values),
            runtime=box.runtime,
            mounts=tuple(_mount(mount, values) for mount in box.mounts),
            options=fill(box.options, values) if box.options else (),
        )
    )
    return Around(
        files=tuple((name, file_word(content, values)) for name, content in sorted(settings.files.items())),
        links=Links(links, settings.workdir.exclude) if links else None,
        ranks=settings.ranks,
        container=container,
    )


def _mount(text: str, values: Mapping[str, str]) -> str:
    """One that names no place inside is at the same place there."""
    return word(text, values) if ":" in text else f"{word(text, values)}:{word(text, values)}"


def work_folder(keys: WorkdirKeys, grid: Grid, host: HostFacts, *, inside: bool = False) -> BashWord | None:
    """Where setup and command run: on this machine in the grid file's folder, unless the grid says otherwise.

    `inside`: in a container.
    """
    own = "." if host.local and not inside and not keys.link_from else None
    return host_folder(keys.folder or own, grid, host)


def host_folder(folder: str | None, grid: Grid, host: HostFacts) -> BashWord | None:
    """A folder as the grid has it, on the host. Raises UserError for a relative one that the host can't have."""
    if folder is None:
        return None
    if not folder.startswith(("/", "~")):
        if not host.local:
            raise UserError(
                f"workdir {folder!r} is relative, and {host.host} has no folder of this grid file",
                "give the folder on the host: ~/... or /...",
            )
        folder = str((grid.path.parent / folder).resolve())
    return word((folder + "/" if folder == "~" else folder).replace("{", "{{"), {})


_MUJOCO = {"MUJOCO_EGL_DEVICE_ID": "{egl_device}"}


def with_egl(variables: Mapping[str, str]) -> Mapping[str, str]:
    """With the EGL device for MuJoCo to draw on, unless the grid names one: it would take the first of the host."""
    return {**_MUJOCO, **variables} if variables.get("MUJOCO_GL") == "egl" else variables


def variables_of(variables: Mapping[str, str], values: Mapping[str, str]) -> tuple[tuple[str, BashWord], ...]:
    """Variables with the placeholders that there are; `values` holds the plan-time ones. Any other brace is text, even
    two of them, because values may be JSON or a template."""

    def known(name: str) -> bool:
        return name in START_TIME or name in values or ASKED.fullmatch(f"{{{name}}}") is not None

    return tuple((name, word(escaped(text, FILLED, known), values)) for name, text in variables.items())


def common_variables(grid: Grid) -> tuple[tuple[str, BashWord], ...]:
    """Those without a placeholder: `after` and `notify` run for all sessions, and have no use for the others."""
    known = {*PLAN_TIME, *START_TIME, "server", "file"}
    return tuple(
        (name, word(text.replace("{", "{{"), {}))
        for name, text in grid.variables.items()
        if not any(asked.partition(".")[0] in known for piece in fillable(text) for asked in placeholders(piece))
    )
