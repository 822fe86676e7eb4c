"""A command that is started once on each GPU, by torch's own launcher. Pure.

`python -m torch.distributed.run` and not `torchrun`: the interpreter of the command is the one that has the program's
torch, whatever else of that name is on the PATH. `--standalone` gives every start a rendezvous of its own on a free
port of this host, so that several run side by side. `--tee 3` copies what the ranks print into files of their own,
below `{output_dir}/ranks`, and into the session's log, each line with its rank in front.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import PurePosixPath

from comborun.session.command import CommandError, split_command

MODULE = "torch.distributed.run"
RANKS = "ranks"
"""folder below {output_dir} for the logs of the ranks"""
_OURS = ("--standalone", "--nproc", "--log-dir", "--log_dir", "--tee", "--redirects", "-t", "-r")


@dataclass(frozen=True)
class Launcher:
    processes: int | None = None
    """None: one for each GPU that the session is granted"""
    arguments: str = ""
    """more options of the launcher"""
    program: str = ""
    """what starts it instead of `python -m torch.distributed.run`"""


def launched(command: str, launcher: Launcher) -> str:
    """The command line that starts `command` on every rank, placeholders still in it. Raises CommandError."""
    words = split_command(command)
    interpreter, script = _parts(words)
    program = launcher.program or shlex.join([interpreter, "-m", MODULE])
    options = [
        "--standalone",
        f"--nproc_per_node={launcher.processes or '{gpu_count}'}",
        f"--log_dir={{output_dir}}/{RANKS}",
        "--tee=3",
    ]
    return " ".join(filter(None, [program, *options, launcher.arguments, shlex.join(script)]))


def check_arguments(text: str) -> None:
    """Raise CommandError for options of the launcher that comborun sets itself."""
    for word in split_command(text):
        if word.startswith(_OURS):
            hint = "`processes` says how many, and `combo logs --rank R` finds the logs"
            raise CommandError(f"{word.partition('=')[0]} is set already", hint, word)


def _parts(words: tuple[str, ...]) -> tuple[str, list[str]]:
    """The interpreter, and the command as the launcher takes it: a script, `-m` and a module, or any program."""
    name = PurePosixPath(words[0]).name
    if name in {"torchrun", "accelerate", "deepspeed"} or MODULE in words[:4]:
        raise CommandError(
            f"`{words[0]}` starts the ranks itself, and `launcher` would start it once for each",
            "leave the launcher out of the command, or `launcher` out of the grid",
            words[0],
        )
    if re.fullmatch(r"python[0-9.]*", name):
        rest = list(words[1:])
        while rest and rest[0] in {"-u", "-B", "-I", "-s", "-E"}:
            rest.pop(0)
        if not rest or (rest[0].startswith("-") and rest[0] != "-m"):
            hint = "python SCRIPT ..., or python -m MODULE ...; what Python is told besides belongs into `variables`"
            raise CommandError(f"the launcher can't start `{' '.join(words[:2])}`", hint, words[0])
        return words[0], rest
    if words[0] == "-m" or name.endswith(".py"):
        return "python", list(words)
    return "python", ["--no_python", *words]
