"""Calls of `combo mcp` that can't be carried out: an assistant reads what is wrong, in our words."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from monitor_stage import StagedHost

pytest.importorskip("mcp", reason="the library mcp is not installed")

from mcp.server.mcpserver.exceptions import ToolError

from comborun.api.named import Target
from comborun.api.run import Run
from comborun.cli.mcp import server_of
from comborun.errors import UserError

RUN = Run(Target(StagedHost([UserError("it is full", "make room", code="full")]), "run", "/x"))


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("logs", {"session": "a", "lines": 500}, "mistake: logs: lines: Input should be less than or equal to 400"),
        ("logs", {"session": "a", "lines": "x"}, "mistake: logs: lines: Input should be a valid integer"),
        ("logs", {}, "mistake: logs: session: Field required"),
        ("status", {"onyl_failed": True}, "mistake: status takes only only_failed, and not onyl_failed"),
        ("causes", {"path": "/etc"}, "mistake: causes takes nothing, and not path"),
        ("stop", {"session": "a"}, "mistake: there is no tool stop; there are status, causes, explain, logs, compare"),
        ("status", {}, "full: it is full; make room"),
    ],
)
def test_a_mistake_is_said_without_words_and_addresses_of_libraries(
    tool: str, arguments: dict[str, Any], said: str
) -> None:
    with pytest.raises(ToolError) as caught:
        asyncio.run(server_of(RUN, act=False).call_tool(tool, arguments))
    words = str(caught.value)
    assert words.startswith(said)
    assert not any(foreign in words.casefold() for foreign in ("pydantic", "http", "arguments", "executing", "input_"))
