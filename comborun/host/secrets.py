"""Values of secrets on this machine: in the environment, or in that of a login shell."""

from __future__ import annotations

import os
import select
import subprocess
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable

_LOGIN_S = 20.0
_OVER = b"comborun-over\0"


def of_host(names: Iterable[str]) -> dict[str, str]:
    """Those of the names that have a value that is not empty."""
    names = list(names)
    values = {name: os.environ[name] for name in names if os.environ.get(name)}
    if len(values) < len(names):
        login = login_environment()
        values.update({name: login[name] for name in names if name not in values and login.get(name)})
    return values


def login_environment(within_s: float = _LOGIN_S) -> dict[str, str]:
    """What a login shell exports, so that ~/.profile counts; nothing where that takes too long.

    What it prints goes nowhere, and what it leaves running is not waited for.
    """
    reading, writing = os.pipe()
    show = f"env -0 >&{writing}; printf 'comborun-over\\0' >&{writing}"
    quiet = subprocess.DEVNULL
    with os.fdopen(reading, "rb", buffering=0) as stream:
        try:
            shell = subprocess.Popen(
                ["bash", "-lc", show],
                stdin=quiet,
                stdout=quiet,
                stderr=quiet,
                pass_fds=(writing,),
                start_new_session=True,
            )
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
