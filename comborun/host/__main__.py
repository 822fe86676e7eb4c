"""`PYTHON -I -S <run>/lib/comborun_host VERB ARGUMENT...`: runs the module of a verb."""

from __future__ import annotations

import os
import re
import sys

_ROOMS = {
    "begun": "verbs.wait_started",
    "dispatch": "dispatch.dispatcher",
    "doctor": "doctor",
    "follow": "follow.follower",
    "orphan": "supervise.orphan",
    "session": "supervise.supervisor",
    "settle": "dispatch.slurm_reconcile",
    "task": "supervise.task",
}
"""verbs whose module has another name, or stands elsewhere than in `verbs`"""


def module_of(verb: str) -> str:
    """The module of a verb, which may not exist."""
    return f"comborun.host.{_ROOMS.get(verb) or 'verbs.' + verb.replace('-', '_')}"


def main() -> int:
    """The exit code of a verb; 64 where there is no such verb."""
    verb = sys.argv[1] if len(sys.argv) > 1 else ""
    name = module_of(verb)
    if re.fullmatch(r"[a-z][a-z-]*", verb):
        try:
            _load(name)
        except ModuleNotFoundError as error:
            if error.name != name:
                raise
        else:
            code: int = sys.modules[name].main(sys.argv[2:])
            return code
    sys.stderr.write(f"comborun: the host program knows no {verb or 'empty verb'}\n")
    return 64


def _load(name: str) -> None:
    try:
        __import__(name)
    except (EOFError, TypeError, ValueError):  # a full disk cut a compiled module short: compile all again
        sys.pycache_prefix, sys.dont_write_bytecode = "/nonexistent", True  # Python would make that folder, even here
        __import__(name)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ImportError:
        if os.path.exists(__file__):
            raise
        sys.stderr.write("comborun: the run was removed meanwhile\n")
        sys.exit(66)
