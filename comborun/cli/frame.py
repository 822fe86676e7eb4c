"""What all commands share: options, the way to a host, and how errors reach a person."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from comborun.errors import UserError
from remote.local import LocalTransport
from remote.runs import DEFAULT_ROOT, Run, choose, list_runs, remembered

if TYPE_CHECKING:
    from collections.abc import Callable

    from comborun.transport import Transport

SOME_DID_NOT = 1
INTERRUPTED = 130

grid_argument = click.argument("grid", type=click.Path(path_type=Path), metavar="GRID")
run_argument = click.argument("run", required=False, metavar="[RUN]")
host_option = click.option("--host", metavar="H", help="Where it runs; this machine unless the grid names a host.")
root_option = click.option("--root", metavar="DIR", help="Folder of the runs on the host; ~/comborun by default.")
json_option = click.option("--json", "as_json", is_flag=True, help="Answer with one JSON document.")


def guarded(command: click.Command) -> int:
    """Run a command; errors that a person can mend are shown without a traceback. Returns the exit code."""
    try:
        code = command.main(standalone_mode=False)
    except click.exceptions.Exit as exit_:
        return exit_.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except UserError as error:
        complain(error)
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output has gone: `combo logs | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return code if isinstance(code, int) else 0


def complain(error: UserError) -> None:
    """Show a mistake and its hint."""
    click.secho("Error: ", fg="red", bold=True, nl=False, err=True)
    click.echo(error.message, err=True)
    if error.hint:
        click.secho("  hint: ", fg="cyan", nl=False, err=True)
        click.echo(error.hint, err=True)


def answer(document: Any) -> None:
    """One JSON document on standard output."""
    click.echo(json.dumps(document, ensure_ascii=False, indent=1))


def connect(host: str | None) -> Transport:
    """The transport to a host."""
    if host in {None, "local"}:
        return LocalTransport()
    raise UserError(
        f"not yet: {host} can't be reached, since hosts over SSH are planned",
        "leave --host away to run on this machine",
    )


def find_run(transport: Transport, wanted: str | None, root: str | None) -> Run:
    """The run that a person means: an id, its beginning, a grid's name, a run directory, or the newest."""
    if wanted and "/" in wanted and (Path(wanted) / "run.json").is_file():
        directory = Path(wanted).resolve()
        return Run(directory.name, str(directory), {})
    memory = [launch.root for launch in reversed(remembered()) if launch.host == transport.host]
    roots = (root,) if root else (DEFAULT_ROOT, *memory)
    return choose(list_runs(transport, roots), wanted, transport.host)


def program(name: str = "combo") -> str:
    """The program as the user can type it: its name when it is on the PATH, else its path."""
    here = Path(sys.argv[0]).resolve().with_name(name)
    found = shutil.which(name)
    if found and Path(found).resolve() == here:
        return name
    return shlex.quote(_relative(here)) if here.is_file() else name


def _relative(path: Path) -> str:
    below = path.is_relative_to(Path.cwd())
    return f"./{path.relative_to(Path.cwd())}" if below else str(path)


def tell(rows: dict[str, str], to: Callable[[str], None] = click.echo) -> None:
    """Rows of a label and a value, aligned."""
    width = max(map(len, rows), default=0)
    for label, value in rows.items():
        to(f"  {click.style(label.ljust(width), dim=True)}  {value}")
