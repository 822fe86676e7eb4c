"""What is put around a combo's command, and the folder on the host in which it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from comborun.command import file_word, fill, launched, word
from comborun.errors import UserError
from comborun.resources import Around, Container, Links

if TYPE_CHECKING:
    from collections.abc import Mapping

    from comborun.grid import Grid, Settings
    from comborun.resources import BashWord, HostFacts


def around_of(settings: Settings, grid: Grid, host: HostFacts, values: Mapping[str, str]) -> Around:
    """`values` holds the plan-time placeholders of the combo."""
    links, container = settings.links, settings.container
    return Around(
        files=tuple((name, file_word(content, values)) for name, content in sorted(settings.files.items())),
        links=Links(host_folder(links.source, grid, host), links.exclude) if links else None,
        ranks=(settings.launcher.processes or settings.gpus) if settings.launcher else 0,
        container=Container(
            image=word(container.image, values),
            runtime=container.runtime,
            mounts=tuple(_mount(mount, values) for mount in container.mounts),
            options=fill(container.options, values) if container.options else (),
        )
        if container
        else None,
    )


def _mount(text: str, values: Mapping[str, str]) -> str:
    """One that names no place inside is at the same place there."""
    return word(text, values) if ":" in text else f"{word(text, values)}:{word(text, values)}"


def started_by(settings: Settings) -> str:
    """The command with its launcher in front, placeholders still in it."""
    return launched(settings.command, settings.launcher) if settings.launcher else settings.command


def host_folder(folder: str, grid: Grid, host: HostFacts) -> BashWord:
    """A folder as the grid has it, on the host. Raises UserError for a relative one that the host can't have."""
    if not folder.startswith(("/", "~")):
        if not host.local:
            raise UserError(
                f"workdir {folder!r} is relative, and {host.host} has no folder of this grid file",
                "give the folder on the host: ~/... or /...",
            )
        folder = str((grid.path.parent / folder).resolve())
    return word((folder + "/" if folder == "~" else folder).replace("{", "{{"), {})
