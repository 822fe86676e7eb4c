"""Runs commands of combo one after the other, each in a fork of this process: `each.py FOLDER WORDS...`.

Their output is in FOLDER/N.out and N.err; the exit codes are printed as a JSON list.
"""

import json
import os
import shlex
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import comborun.cli
from comborun.__main__ import main

MODULES = (
    *(f"comborun.cli.{file.stem}" for file in Path(comborun.cli.__file__).parent.glob("[a-z]*.py")),
    *("comborun.grid.file", "comborun.monitor.watch", "comborun.remote.fetch", "comborun.remote.ssh.shell"),
    *("comborun.reporter.report", "comborun.reporter.comparing.power", "jsonlines", "paramiko", "scipy.special"),
)


def run(folder: str, number: int, words: str) -> int:
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    for name, stream in (("out", 1), ("err", 2)):
        os.dup2(os.open(f"{folder}/{number}.{name}", os.O_WRONLY | os.O_CREAT, 0o600), stream)
    sys.argv = ["combo", *shlex.split(words)]
    try:
        main()
    except SystemExit as ended:
        sys.stdout.flush()
        os._exit(ended.code if isinstance(ended.code, int) else 1)
    except Exception:  # noqa: BLE001 - the parent goes on
        sys.excepthook(*sys.exc_info())
        os._exit(70)
    os._exit(0)


if __name__ == "__main__":  # a pool of processes imports this again
    for module in MODULES:
        with suppress(ImportError):  # a test may hide a library
            import_module(module)  # once, and not in each fork
    print(json.dumps([run(sys.argv[1], number, words) for number, words in enumerate(sys.argv[2:])]))
