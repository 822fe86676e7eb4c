"""Which machine a record's process belongs to."""

from __future__ import annotations

import pytest

from comborun.rules.facts import Fact
from comborun.rules.machines import Elsewhere, elsewhere

OWN = {"boot": "b1", "host": "vm", "pid_namespace": "7", "machine_mark": "m1", "adapters_mark": "a1"}
COPY = {"boot": "b0", "pid_namespace": "7", "host": "vm"}


@pytest.mark.parametrize(
    ("there", "why"),
    [
        ({}, None),
        ({"boot": "b1"}, None),
        ({"boot": "b1", "pid_namespace": "7", "host": "renamed meanwhile"}, None),
        ({"boot": "b0", "pid_namespace": "8", "host": "vm"}, None),  # a restart
        ({"boot": "b0", "host": "other"}, None),  # of the former version
        ({"boot": "b0", "pid_namespace": "7", "host": "other"}, Elsewhere.MACHINE),
        ({**COPY, "machine_mark": "m2", "adapters_mark": "a2"}, Elsewhere.NAMESAKE),
        ({**COPY, "machine_mark": "m2", "adapters_mark": "a1"}, None),  # installed again
        ({**COPY, "machine_mark": "m1", "adapters_mark": "a2"}, None),  # with another adapter
        ({**COPY, "machine_mark": "", "adapters_mark": "a2"}, None),
        ({**COPY, "machine_mark": "m2", "adapters_mark": ""}, None),
        ({**COPY, "machine_mark": "m2"}, None),
        ({**COPY, "boot": "b1", "machine_mark": "m2", "adapters_mark": "a2"}, None),
        ({"boot": "b1", "pid_namespace": "8", "host": "vm"}, Elsewhere.NAMESPACE),
        ({"boot": "b1", "pid_namespace": "8", "host": "box"}, Elsewhere.NAMESPACE),
    ],
)
def test_another_host_or_another_process_namespace_of_the_same_boot_is_elsewhere(
    there: dict[str, str], why: str | None
) -> None:
    assert elsewhere(there, OWN) == (Fact(why, host=there["host"], here="vm") if why else None)
