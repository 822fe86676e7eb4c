"""The model servers of a session: their URLs, and whether they are still the ones that it started with."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from comborun.host import files
from comborun.host.attempts import ENDED, LOST, RunDirectory
from comborun.rules.names import RunLayout

_URL = r"http://([0-9.]+):([1-9][0-9]{0,4})"


def environment(run: str, servers: Sequence[str], gpus: str, grant: Mapping[str, str]) -> dict[str, str]:
    """The variables that tell where they are; by hand, without a grant, of what runs in this run.

    Raises LookupError where one of them is nowhere.
    """
    variables: dict[str, str] = {}
    for name in servers:
        match = re.fullmatch(_URL, grant.get(f"server_{name}") or _url_by_hand(run, name, gpus))
        if not match:
            raise LookupError(f"it needs the server {name}, and none is ready")
        stem = f"COMBORUN_SERVER_{name.upper().replace('-', '_')}"
        variables[f"{stem}_URL"], variables[f"{stem}_HOST"], variables[f"{stem}_PORT"] = (
            match.group(),
            match[1],
            match[2],
        )
    return variables


def _url_by_hand(run: str, name: str, gpus: str) -> str:
    """Of the server, or of the one of its GPU, or of any GPU."""
    folder = f"{run}/servers"
    on_gpus = sorted(one for one in files.entries(folder) if one.startswith(f"{name}-gpu"))
    for one in (name, f"{name}-gpu{gpus.partition(',')[0]}", *on_gpus):
        if url := files.read_line(f"{folder}/{one}/url"):
            return url
    return ""


def lost(run: str, served_by: str) -> str:
    """Which server (of `NAME/ATTEMPT ...`) is gone, as a sentence; a new one at the same address is another one."""
    directory = RunDirectory(run)
    for name, attempt in _given(served_by):
        seen = directory.glance(name, attempt, "servers")
        if seen.life in (ENDED, LOST):
            cause, code = seen.record.get("cause", ""), seen.record.get("code", "")
            reason = f"{cause}, code {code}" if cause and code else cause
            return f"its server {name} ended ({reason})" if reason else f"its server {name} ended"
    return ""


def silent(run: str, served_by: str, within: float) -> str:
    """Which of them does not answer just now, as a sentence. Waits for the answers.

    An error is no answer here either: vLLM's front lives on with 503 once its engine has died.
    """
    from comborun.host.endpoint import healthy, port_of

    for name, attempt in _given(served_by):
        ready = files.read(RunLayout(run).server_attempt(name, attempt).ready)
        port = port_of(ready.get("port", ""))
        if port and not healthy(port, ready.get("path", ""), within):
            return f"its server {name} does not answer"
    return ""


def _given(served_by: str) -> list[tuple[str, int]]:
    """Name and attempt of each."""
    given = (one.rpartition("/") for one in served_by.split())
    return [(name, int(number)) for name, _, number in given if number.isdecimal()]
