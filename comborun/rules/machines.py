"""Whether the process of a record belongs to this machine: pids and boot ids mean nothing on another one. Pure.

Several machines may share a home, and so the folder of a run. A record names the machine of its process by boot id,
host name and process namespace (`MACHINE`). The same host name with another boot is this machine after a restart,
unless both marks of a machine (`MARKS`) are known and both differ: copies of one image often share a name. A container
is like another machine: its processes can't be seen from outside their namespace, nor others from inside.
"""

from __future__ import annotations

from comborun.rules.facts import Fact
from comborun.rules.vocabulary import Word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Mapping

BOOT, HOST, NAMESPACE = MACHINE = ("boot", "host", "pid_namespace")
"""the fields that name a machine"""
MARKS = ("machine_mark", "adapters_mark")
"""check sums of /etc/machine-id and of the addresses of its network adapters; empty or absent if not known"""


class Elsewhere(Word):
    """Why a run can't be steered from here. `host`: where it runs; `here`: the name of this machine."""

    MACHINE = "runs_on_another_machine"  # host, here
    NAMESAKE = "runs_on_a_namesake"  # host, here
    NAMESPACE = "runs_in_another_container"  # host, here


def elsewhere(record: Mapping[str, str], own: Mapping[str, str]) -> Fact | None:
    """Why the process of a record can't be seen by a process of the machine `own`; None if it can.

    A record of the former version names no namespace, and counts as of this machine.
    """
    boot, host, namespace = (record.get(key, "") for key in MACHINE)
    if not boot or not namespace:
        return None
    if boot == own[BOOT]:
        inside = own[NAMESPACE] and namespace != own[NAMESPACE]
        return Fact(Elsewhere.NAMESPACE, host=host, here=own[HOST]) if inside else None
    if host != own[HOST]:
        return Fact(Elsewhere.MACHINE, host=host, here=own[HOST])
    marks = [(record.get(key), own.get(key)) for key in MARKS]
    differ = all(there and here and there != here for there, here in marks)
    return Fact(Elsewhere.NAMESAKE, host=host, here=own[HOST]) if differ else None
