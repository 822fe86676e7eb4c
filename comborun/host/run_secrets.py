"""Environment variables whose values are in no file but one, dispatch/secrets, for as long as the run lasts.

dispatch/secrets.tsv says which: a line each, name <TAB> host or laptop.
"""

from __future__ import annotations

import os
import re

from comborun.host import files
from comborun.rules.names import RunLayout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable

_NAME = re.compile("[A-Za-z_][A-Za-z0-9_]*")


def wanted(run: str) -> dict[str, str]:
    """Name -> `host` or `laptop`, of a run's secrets."""
    rows = [line.split("\t") for line in files.read_text(RunLayout(run).wanted_secrets).splitlines()]
    return {row[0]: "host" if row[1:2] == ["host"] else "laptop" for row in rows if _NAME.fullmatch(row[0])}


def gather(run: str, given: bytes | None) -> None:
    """Put the values of all secrets into dispatch/secrets.

    `given` is NAME=VALUE and a NUL for each that the laptop gives; None: this environment has to do.
    Raises LookupError where one is missing or can't be written.
    """
    names = wanted(run)
    if not names:
        return
    from comborun.host.secrets import of_host  # what a session imports of this module needs none of it

    found = _kept(run, names)
    found.update(of_host([name for name, source in names.items() if source == "host"]))
    laptops = [name for name, source in names.items() if source == "laptop"]
    entries = given.split(b"\0") if given is not None else [b"%s=%s" % pair for pair in os.environb.items()]
    found.update(_entries(entries, laptops))
    for name in names:
        if name not in found:
            raise LookupError(
                f"the secret {name} is not in the environment here: combo launch sends it, or export {name}"
            )
    text = "".join(f"{name}={found[name]}\0" for name in names)
    if not files.write_text(RunLayout(run).secrets, text, mode=0o600):
        raise LookupError(f"can't write {RunLayout(run).secrets}")
    for name in names:
        os.environ.pop(name, None)  # what is started now has them from the file


def values(run: str) -> dict[str, str]:
    """What a command's environment gets. Raises LookupError where one is missing.

    By hand a variable that is set already will do.
    """
    names = wanted(run)
    found = _kept(run, names)
    for name in names:
        if name not in found and not os.environ.get(name):
            raise LookupError(f"the secret {name} is not there: combo launch sends it again")
    return found


def forget(run: str) -> None:
    """Remove the values, and drafts of a start that was killed."""
    layout = RunLayout(run)
    try:
        names = os.listdir(layout.dispatch)
    except OSError:
        return
    files.remove(*(f"{layout.dispatch}/{name}" for name in names if name == "secrets" or name.startswith(".secrets.")))


def _kept(run: str, names: Iterable[str]) -> dict[str, str]:
    try:
        with open(RunLayout(run).secrets, "rb") as file:
            return _entries(file.read().split(b"\0"), names)
    except OSError:
        return {}


def _entries(entries: Iterable[bytes], names: Iterable[str]) -> dict[str, str]:
    """NAME=VALUE of these names, unless the value is empty."""
    pairs = [os.fsdecode(entry).partition("=") for entry in entries]
    names = set(names)
    return {name: value for name, _, value in pairs if name in names and value}
