"""The files by which a run gets an amended plan (host/amend.py puts them there). Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from comborun.bundle import File, policy, queue, serving
from comborun.errors import UserError
from comborun.jobs import texts
from comborun.rules.names import RUN
from comborun.rules.records import render
from comborun.script import notify_script, scripts, sheets

if TYPE_CHECKING:
    from collections.abc import Iterator

    from comborun.plan import Plan


def amendment(before: Plan, after: Plan, number: int, grid_text: str) -> Iterator[File]:
    """What differs between two plans of a run; `number` is that of `before`. Without a text the grid is as it was.

    The same plan keeps its number: an amendment that was interrupted is put there again, not counted again.
    """
    _check_servers(before, after)
    text = after.to_json()
    if text != before.to_json():
        number += 1
    yield File(RUN.plan(number), text)
    if number > 1 and grid_text:
        yield File(RUN.amended_grid(number), grid_text)
    yield from serving(after)
    yield File(RUN.queue, queue(after))
    yield File(RUN.policy, policy(after))
    if before.secrets != after.secrets:
        yield File(RUN.wanted_secrets, render(after.secrets))
    if after.slurm:
        yield from (File(path, text) for path, text in texts(after) if path != RUN.engine)
    if after.notify:
        yield File(RUN.notify, notify_script(after.notify))
    there = dict(scripts(before))
    for name, script in scripts(after):
        if there.get(name) != script:
            yield File(RUN.script(name), script)
    known = dict(sheets(before))
    for name, sheet in sheets(after):
        if known.get(name) != sheet:
            yield File(RUN.sheet(name), sheet)


def _check_servers(before: Plan, after: Plan) -> None:
    """Raise UserError where a server is defined anew: what runs would not be what the sessions of the run asked."""
    had = {server.name: server.digest for server in before.servers}
    for server in after.servers:
        if had.get(server.name, server.digest) != server.digest:
            raise UserError(
                f"the server `{server.name}` is defined otherwise than in the run that this grid has",
                "another run of it: `--new`; or give the new server another name",
            )
