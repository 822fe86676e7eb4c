"""The model servers of a session, as a client sees them: where they are, whether they live, and whether they answer."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Mapping, Sequence

from comborun.host.record.run_directory import RunDirectory
from comborun.host.system import files, process
from comborun.host.verb_errors import LACKING, Refusal
from comborun.rules import records
from comborun.rules.endings.evidence import Evidence, fact
from comborun.rules.facts import Fact
from comborun.rules.host import Denial
from comborun.rules.names import LOOPBACK, NO_PROXY, SERVER_FIELDS, SERVERS, RunLayout, server_variable
from comborun.rules.vocabulary import Life

_URL = r"http://([0-9.]+):([1-9][0-9]{0,4})"


def environment(run: str, servers: Sequence[str], gpus: str, grant: Mapping[str, str]) -> dict[str, str]:
    """The variables with the addresses of the servers. By hand, without a grant, they are those of this run.

    Raises Refusal if a server has no address.
    """
    variables: dict[str, str] = {}
    for name in servers:
        match = re.fullmatch(_URL, grant.get(f"server_{name}") or _url_by_hand(run, name, gpus))
        if not match:
            raise Refusal(LACKING, Denial.NO_SERVER, server=name)
        address = zip(SERVER_FIELDS, (match[0], match[1], match[2]))
        variables.update({server_variable(name, field): value for field, value in address})
    return variables


def without_proxy(variables: Mapping[str, str]) -> dict[str, str]:
    """The variables that keep a proxy away from this machine's own addresses, where its servers are."""
    known = [one.strip() for name in NO_PROXY for one in variables.get(name, "").split(",")]
    return dict.fromkeys(NO_PROXY, ",".join(dict.fromkeys(filter(None, (*known, *LOOPBACK)))))


def _url_by_hand(run: str, name: str, gpus: str) -> str:
    """The URL of the server: of the one on its GPU, or of any."""
    layout = RunLayout(run)
    on_gpus = sorted(one for one in files.entries(layout.servers) if one.startswith(f"{name}-gpu"))
    for one in (name, f"{name}-gpu{gpus.partition(',')[0]}", *on_gpus):
        if url := files.read_line(layout.server_url(one)):
            return url
    return ""


def lost(run: str, served_by: str) -> Fact | None:
    """The server (of `NAME/ATTEMPT ...`) that is gone; a new one at the same address is another one."""
    directory = RunDirectory(run)
    for name, attempt in _given(served_by):
        seen = directory.glance(SERVERS + name, attempt)
        if seen.life in (Life.ENDED, Life.LOST):
            cause, code = seen.record.get("cause") or None, seen.record.get("code") or None
            return fact(Evidence.SERVER_ENDED, server=name, cause=cause, exit=code)
    return None


def silent(run: str, served_by: str, within: float) -> Fact | None:
    """A server that does not answer now. Waits for the answers.

    An error counts as no answer: vLLM's front end lives on with 503 after its engine has died.
    """
    for name, attempt in _given(served_by):
        ready = files.read(RunLayout(run).attempt(SERVERS + name, attempt).ready)
        port = records.integer(ready, "port")
        if port and not healthy(port, ready.get("path", ""), within):
            return fact(Evidence.SERVER_SILENT, server=name)
    return None


def are_ready(run: str, served_by: str) -> bool:
    """Whether all servers have been ready, so that `silent` has asked each."""
    return all(os.path.exists(RunLayout(run).attempt(SERVERS + name, one).ready) for name, one in _given(served_by))


def _given(served_by: str) -> list[tuple[str, int]]:
    given = (one.rpartition("/") for one in served_by.split())
    return [(name, int(number)) for name, _, number in given if number.isdecimal()]


# A program that listens on this machine

_MOST = 1 << 20
"""most bytes of an answer that are kept"""


class Answer:
    """An answer. `status` is 0 if it was not HTTP, or did not come in time."""

    def __init__(self) -> None:
        self.connected = False
        self.status = 0
        self.reason = ""
        self.body = b""


def request(
    port: int, within: float, path: str = "", method: str = "GET", content: tuple[str, str] = ("", "")
) -> Answer:
    """Request a path, or only connect without one. Returns when the program has answered or refused, or after `within`
    seconds.

    `content`: a media type and a body.
    """
    import http.client

    answer, deadline = Answer(), time.monotonic() + within
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=within)
    media, body = content
    headers = {"Connection": "close", **({"Content-Type": media or "application/json"} if body else {})}
    with contextlib.closing(connection), contextlib.suppress(OSError, http.client.HTTPException, ValueError):
        connection.connect()
        answer.connected = True
        if not path:
            return answer
        connection.request(method, path, body.encode("utf-8", "surrogateescape") or None, headers)
        response = connection.getresponse()
        answer.status, answer.reason = response.status, response.reason
        while len(answer.body) < _MOST and time.monotonic() < deadline and (data := response.read1(65536)):
            answer.body += data
    return answer


def healthy(port: int, path: str, within: float) -> bool:
    """Whether it answers without an error; without a path, whether it accepts the connection."""
    answer = request(port, within, path)
    return 200 <= answer.status < 400 if path else answer.connected


def _listening(port: int) -> list[list[bytes]]:
    """The rows of /proc/net/tcp and tcp6 with a socket that listens on this port."""
    rows = [line.split() for table in ("tcp", "tcp6") for line in process.read(f"net/{table}").splitlines()[1:]]
    return [row for row in rows if row[3] == b"0A" and int(row[1].rpartition(b":")[2], 16) == port]


def listens_elsewhere(port: int) -> str:
    """The address on which something listens on this port, if 127.0.0.1 does not reach it; else empty."""
    addresses = {_address(row[1].rpartition(b":")[0]) for row in _listening(port)}
    if not addresses or addresses & {"127.0.0.1", "0.0.0.0", "[::]"}:  # noqa: S104 - nothing is bound
        return ""
    return f"{min(addresses)}:{port}"


def _address(found: bytes) -> str:
    """An address of /proc/net/tcp: words of four bytes, each turned around."""
    import socket

    packed = b"".join(bytes.fromhex(found[at : at + 8].decode())[::-1] for at in range(0, len(found), 8))
    if len(packed) == 4:
        return socket.inet_ntop(socket.AF_INET, packed)
    return f"[{socket.inet_ntop(socket.AF_INET6, packed)}]"


def taken_by_another(port: int, ours: list[int]) -> bool:
    """Whether a process that is not one of `ours` listens there; a hidden process counts as ours."""
    sockets = {f"socket:[{row[9].decode()}]" for row in _listening(port)}
    if not sockets or any(_holds(pid, sockets) for pid in ours):
        return False
    return any(_holds(pid, sockets) for pid in process.pids())


def _holds(pid: int, sockets: set[str]) -> bool:
    folder = f"/proc/{pid}/fd"
    try:
        names = os.listdir(folder)
    except OSError:
        return False
    for name in names:
        try:
            if os.readlink(f"{folder}/{name}") in sockets:
                return True
        except OSError:
            continue
    return False
