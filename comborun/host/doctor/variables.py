"""Variables of the shell that change what sessions get."""

from __future__ import annotations

import os

from comborun.host.doctor.machine import Box
from comborun.host.record.clients import LOOPBACK, NO_PROXY
from comborun.rules.findings import Finding, Found, note

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator

_PROXIES = ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY")


def variables(_: Box) -> Iterator[Finding]:
    proxies = [name for name in _PROXIES if os.environ.get(name)]
    spared = {one.strip() for name in NO_PROXY for one in os.environ.get(name, "").split(",")}
    if proxies and not spared & {*LOOPBACK, "*"}:
        yield note("variables", Found.PROXY, variables=proxies)
    if ours := sorted(name for name in os.environ if name.startswith("SBATCH_")):
        yield note("variables", Found.SLURM_VARIABLES, variables=ours)
