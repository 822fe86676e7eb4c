"""Variables of the shell that change what sessions get."""

from __future__ import annotations

import os

from comborun.host.doctor.machine import Box
from comborun.host.record.clients import LOOPBACK, NO_PROXY
from comborun.rules.findings import Finding, note

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator

_PROXIES = ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY")


def variables(_: Box) -> Iterator[Finding]:
    proxies = [name for name in _PROXIES if os.environ.get(name)]
    spared = {one.strip() for name in NO_PROXY for one in os.environ.get(name, "").split(",")}
    if proxies and not spared & {*LOOPBACK, "*"}:
        found = f"{', '.join(proxies)} is set, and no_proxy does not name 127.0.0.1"
        cost = "sessions with a model server get it in no_proxy; what you start by hand asks the proxy for the server"
        yield note("variables", found, cost, f"export no_proxy={','.join(LOOPBACK)}")
    if ours := sorted(name for name in os.environ if name.startswith("SBATCH_")):
        cost = "they count for --slurm only where the grid gives no such option"
        yield note("variables", f"{', '.join(ours)}: set", cost, "unset ${!SBATCH_@}")
