"""`facts SECRET...`: describes this machine for a plan, as one JSON document.

Standard input lists what the grid needs, for preflight.py to look for. It may be empty.
"""

from __future__ import annotations

import json
import os
import shutil
import sys

from comborun.host.doctor import preflight
from comborun.host.engines.multiplexers import MULTIPLEXERS
from comborun.host.record import secrets
from comborun.host.system import commands, driver, machine
from comborun.host.verb_errors import answered
from comborun.rules.facts import data_of

NEEDED = ("bash", "cat", "head", "mkdir", "setsid", "tail", "timeout")
"""programs that scripts on a host call, beside tmux or screen"""


def main(arguments: list[str]) -> int:
    return answered("facts", lambda: facts(arguments))


def facts(wanted: list[str]) -> dict[str, object]:
    """The facts. `lacking` names the secrets that have no value here."""
    there = secrets.of_host(wanted) if wanted else {}
    told = sys.stdin.read()
    named = json.loads(told) if told else {}
    memory, available = machine.memory_kib()
    return {
        "python": os.path.realpath(sys.executable),
        "hostname": os.uname().nodename,
        "bash": commands.bash_version(),
        **{kind: commands.first_line(kind, one.version) for kind, one in MULTIPLEXERS.items()},
        "cpus": len(machine.cores()),
        "memory_kib": memory or 0,
        "available_kib": available,
        "missing": {name: flaw for name in NEEDED if (flaw := commands.lack(name))},
        "lacking": [name for name in wanted if name not in there],
        "gpus": gpus(),
        "absent": data_of(preflight.lacks(named)) if named else [],
        "checkpoints": preflight.checkpoints(named),
        "code": [found for folder in preflight.folders(named) if (found := code(folder))],
    }


def code(folder: str) -> dict[str, object]:
    """The commit of a folder, and whether its files differ from it; empty outside a repository."""
    here = ("-u", "GIT_DIR", "-u", "GIT_WORK_TREE", "-u", "GIT_INDEX_FILE")  # of a hook that started us
    git = ("env", *here, "git", "-c", "core.fsmonitor=false", "-C", folder)
    failed, commit = commands.run(commands.PATIENCE_S, *git, "rev-parse", "HEAD")
    if failed:
        return {}
    failed, changes = commands.run(commands.PATIENCE_S, *git, "status", "--porcelain", "--untracked-files=no")
    return {"folder": folder, "commit": commit, "uncommitted": None if failed else bool(changes)}


def gpus() -> dict[str, object]:
    """What nvidia-smi tells; empty where it is not there."""
    if not shutil.which("nvidia-smi"):
        return {}
    code, said = commands.run(commands.PATIENCE_S, "nvidia-smi", *driver.CARDS)
    lines = said.splitlines()
    return {"code": code, "said": "".join(lines[:1]), "cards": [vars(card) for card in driver.cards(lines)]}
