"""In which folder of sockets a window is looked for."""

from __future__ import annotations

import pytest

from comborun.model.attempt import Begin
from comborun.remote.logs import attach_command
from comborun.rules import names


@pytest.mark.parametrize("kind", names.MULTIPLEXER_NAMES)
def test_it_is_that_of_its_multiplexer_and_not_of_another_one(kind: str) -> None:
    folders = {name.lower(): f"/sockets/of/{one}" for one, name in names.SOCKETS.items() if name}
    begin = Begin.of({**folders, "multiplexer": kind, "address": "address"})
    assert begin.sockets == (f"/sockets/of/{kind}" if names.SOCKETS[kind] else "")
    assert begin.sockets in " ".join(attach_command(begin, local=False, write=True))
