"""Faults of links and hosts. The long ones run with COMBORUN_SLOW=1."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from desk import Desk, desk
from ground import Ground, ground_at
from hosts import Site, site
from network import missing
from sshd import Sshd, fresh_user, running_sshd, ssh_place

__all__ = ["desk", "ssh_place"]


@pytest.fixture
def testbed() -> None:
    """Skips where there can be no namespaces."""
    why = missing()
    if why:
        pytest.skip(why)


@pytest.fixture
def near_site(testbed: None) -> Iterator[Site]:
    """A host of its own, on a link without delay."""
    with site() as made:
        yield made


@pytest.fixture
def far_site(testbed: None) -> Iterator[Site]:
    """A host of its own, 200 ms away and back."""
    with site(200) as made:
        yield made


@pytest.fixture(scope="session")
def fault_sshd(ssh_place: Path) -> Iterator[Sshd]:
    """An sshd whose user has an environment of their own in ~/.ssh/environment."""
    with (
        fresh_user() as user,
        running_sshd(ssh_place / f"faults-{user.name}", user, "PermitUserEnvironment yes") as made,
    ):
        yield made


@pytest.fixture
def ground(desk: Desk, request: pytest.FixtureRequest) -> Iterator[Ground]:
    """A host in one of the four cells of the matrix: the parameter."""
    with ground_at(request.param, desk, request) as made:
        yield made
