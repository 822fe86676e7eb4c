"""Secrets: environment variables whose values are only in dispatch/secrets, while the run lasts.

dispatch/secrets.json names them, and says whether the host or the laptop has each value.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable

from comborun.host.system import files
from comborun.rules.endings.evidence import Evidence, MissingResource
from comborun.rules.names import VARIABLE, RunLayout

_LOGIN_S = 20.0
_OVER = b"comborun-over\0"


def wanted(run: RunLayout) -> dict[str, str]:
    """Name -> `host` or `laptop`, of a run's secrets."""
    return {name: source for name, source in files.read(run.wanted_secrets).items() if VARIABLE.fullmatch(name)}


def gather(run: RunLayout, given: bytes | None) -> None:
    """Put the values of all secrets into dispatch/secrets.

    `given` is NAME=VALUE and a NUL for each value from the laptop; None: the values of this environment must do. Raises
    MissingResource if one is missing or can't be written.
    """
    names = wanted(run)
    if not names:
        return
    found = _kept(run, names)
    found.update(of_host([name for name, source in names.items() if source == "host"]))
    laptops = [name for name, source in names.items() if source == "laptop"]
    entries = given.split(b"\0") if given is not None else [b"%s=%s" % pair for pair in os.environb.items()]
    found.update(_entries(entries, laptops))
    for name in names:
        if name not in found:
            raise MissingResource(Evidence.SECRET_NOT_SET, name=name)
    text = "".join(f"{name}={found[name]}\0" for name in names)
    if not files.write_text(run.secrets, text, mode=0o600):
        raise MissingResource(Evidence.CANNOT_WRITE, path=run.secrets)
    for name in names:
        os.environ.pop(name, None)  # children read them from the file


def values(run: RunLayout) -> dict[str, str]:
    """The secrets for a command's environment; by hand, a variable that is set already will do.

    Raises MissingResource if one is missing.
    """
    names = wanted(run)
    found = _kept(run, names)
    for name in names:
        if name not in found and not os.environ.get(name):
            raise MissingResource(Evidence.SECRET_MISSING, name=name)
    return found


def forget(run: RunLayout) -> None:
    """Remove the values, and drafts of a start that was killed."""
    try:
        names = os.listdir(run.dispatch)
    except OSError:
        return
    files.remove(*(f"{run.dispatch}/{name}" for name in names if name == "secrets" or name.startswith(".secrets.")))


def of_host(names: Iterable[str]) -> dict[str, str]:
    """Non-empty values of these names, from the environment or from a login shell."""
    names = list(names)
    found = {name: os.environ[name] for name in names if os.environ.get(name)}
    if len(found) < len(names):
        login = login_environment()
        found.update({name: login[name] for name in names if name not in found and login.get(name)})
    return found


def login_environment(within_s: float = _LOGIN_S) -> dict[str, str]:
    """What a login shell exports, including ~/.profile; nothing if that takes too long.

    Its output is dropped. Processes that it leaves running are not waited for.
    """
    import select
    import subprocess

    reading, writing = os.pipe()
    show = f"env -0 >&{writing}; printf 'comborun-over\\0' >&{writing}"
    words = ["bash", "-lc", show]
    with os.fdopen(reading, "rb", buffering=0) as stream:
        try:
            shell = subprocess.Popen(words, stdin=-3, stdout=-3, stderr=-3, pass_fds=(writing,), start_new_session=True)
        except OSError:
            return {}
        finally:
            os.close(writing)
        data, deadline = b"", time.monotonic() + within_s
        while not data.endswith(_OVER) and select.select([stream], [], [], max(0.0, deadline - time.monotonic()))[0]:
            chunk = stream.read(65536)
            if not chunk:
                break
            data += chunk
        shell.kill()
        shell.wait()
    entries = (os.fsdecode(entry).partition("=") for entry in data.split(b"\0"))
    return {name: value for name, equals, value in entries if equals}


def _kept(run: RunLayout, names: Iterable[str]) -> dict[str, str]:
    try:
        with open(run.secrets, "rb") as file:
            return _entries(file.read().split(b"\0"), names)
    except OSError:
        return {}


def _entries(entries: Iterable[bytes], names: Iterable[str]) -> dict[str, str]:
    """The values of these names, except empty ones."""
    pairs = [os.fsdecode(entry).partition("=") for entry in entries]
    names = set(names)
    return {name: value for name, _, value in pairs if name in names and value}
