"""What a session's script says of the files, links, ranks and container around its command. Pure."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from comborun.plan import Session


def wrapping(session: Session) -> Iterator[str]:
    """What is known before the grant."""
    around = session.around
    if session.results.videos:
        yield f"videos=({' '.join(map(shlex.quote, session.results.videos))})"
    if around.ranks:
        yield f"ranks={around.ranks}"
    if around.links:
        yield f"link_from={around.links.source}"
        if around.links.exclude:
            yield f"link_exclude=({' '.join(map(shlex.quote, around.links.exclude))})"
    if around.container:
        yield f"container={around.container.runtime}"
    if around.files:
        yield f"file_names=({' '.join(map(shlex.quote, (name for name, _ in around.files)))})"


def wrapped_late(session: Session) -> Iterator[str]:
    """What may hold start-time placeholders."""
    if session.around.files:
        yield from ("file_texts=(", *(f"  {text}" for _, text in session.around.files), ")")
    if container := session.around.container:
        yield f"container_image={container.image}"
        for key, words in (("mounts", container.mounts), ("options", container.options)):
            if words:
                yield from (f"container_{key}=(", *(f"  {word}" for word in words), ")")
