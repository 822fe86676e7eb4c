"""Arguments and options that commands share, the hosts and runs that they name, and words that a shell completes."""

from __future__ import annotations

import functools
import re
import shlex
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from comborun.cli.terminal import ask_secret, note, program, working
from comborun.errors import HostError, UserError
from comborun.remote.runs import (
    GpuUser,
    Run,
    age_of_copy,
    bring_records,
    changed_since,
    choose_run,
    copy_of,
    host_of,
    list_runs,
    look_at_host,
    plan_of,
    remembered,
)
from comborun.remote.transport import LOCAL, LocalTransport
from comborun.rules.names import DEFAULT_ROOT, RUN
from comborun.text import clean, harmless, shortened
from comborun.words.times import brief

if TYPE_CHECKING:
    from collections.abc import Callable

    from comborun.grid import Grid
    from comborun.model.plan import Plan
    from comborun.monitor.watch import Source
    from comborun.remote.fetch import FetchOptions
    from comborun.remote.mirror import Skipped
    from comborun.remote.runs import Launch
    from comborun.remote.ssh.shell import ShellTransport
    from comborun.remote.transport import Transport

    Command = Callable[..., Any]
    Copy = tuple[Path, tuple[Skipped, ...]]
    """where the records of a run are on this machine, and what could not be brought here"""

_PLACE = re.compile(r"""^["']?(name|host|root)\b""", re.MULTILINE)
_PLAIN = re.compile(
    r"^(name|host|root): +(?!(?i:~|null|true|false) *$)([A-Za-z~/][\w@./~-]*)(?: +#.*| *)$", re.MULTILINE | re.ASCII
)
click.IntRange.name, click.FloatRange.name = "whole number", "number"
SLOTS = click.IntRange(1, 999_999)
"""number of sessions at once: the host reads six digits"""

_SET = click.option(
    "--set", "given", multiple=True, metavar="KEY=VALUE", help="Set one value of the grid: limits.parallel=4."
)
episodes_option = functools.partial(
    click.option,
    "--episodes",
    type=click.IntRange(min=1),
    show_default=True,
    metavar="K",
    help="How many episodes of each combo run.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Answer with one JSON document.")
take_over_option = click.option(
    "--take-over",
    is_flag=True,
    help="Go on here with a run of another machine, which was renamed or is gone: what ran there is lost.",
)
environment_option = click.option(
    "--environment",
    type=click.Choice(["first", "now"]),
    default="now",
    help="Whose PATH, VIRTUAL_ENV, CONDA_*, PYTHONPATH and LD_LIBRARY_PATH sessions get: those of the first launch of"
    " the run, or of this command.",
)
slurm_option = click.option("--slurm", is_flag=True, help="Submit the sessions to Slurm as job arrays.")


def offers(what: str) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """Completes a word; the words are looked up only when a shell completes."""

    def offer(context: click.Context, _parameter: click.Parameter, begun: str) -> list[str]:
        return [word for word in dict.fromkeys(words(what, context)) if word.startswith(begun)]

    return offer


sessions_argument = functools.partial(click.argument, nargs=-1, shell_complete=offers("sessions"))
_RUN_ARGUMENT = click.argument("run", required=False, metavar="[RUN]", shell_complete=offers("runs"))
run_option = click.option(
    "--run", "wanted", metavar="RUN", shell_complete=offers("runs"), help="The run; the newest by default."
)
_ROOT = click.option("--root", metavar="DIR", help="Folder of the runs on the host; ~/comborun by default.")
_HOST = (
    click.option(
        "--host",
        metavar="H",
        shell_complete=offers("hosts"),
        help="An ssh alias, user@host:port, or `local`; by default that of the grid or of the run.",
    ),
    click.option(
        "--transport",
        type=click.Choice(["ssh", "openssh"]),
        help="How to reach the host; by default as at the launch, else ssh.",
    ),
    click.option("--accept-new", is_flag=True, help="Trust a host whose key is not known yet, and remember the key."),
)
_OPENING = {"wanted", "root", "host", "transport", "accept_new"}
"""parameters that find a run or open its host; many commands have them"""


def order_options(command: click.Command) -> None:
    """Put the options that only find a run or open its host last in the help."""
    command.params.sort(key=lambda one: one.name in _OPENING)
    for below in command.commands.values() if isinstance(command, click.Group) else ():
        order_options(below)


class GridChoice(NamedTuple):
    """A grid file, and values of the command line that replace some of its values."""

    path: Path
    given: tuple[str, ...] = ()

    def __str__(self) -> str:
        """The grid and its options, to be typed again."""
        return f"{self.path}{self.options}"

    @property
    def options(self) -> str:
        return "".join(f" --set {shlex.quote(setting)}" for setting in self.given)

    def read(self) -> Grid:
        """The grid. Raises UserError with all of its mistakes."""
        from comborun.remote.grids import read_grid

        return read_grid(self.path, self.given)


def grid_argument(command: Command, envvar: str | None = None) -> Command:
    """Gives a command a grid file and `--set`, as one argument `grid`."""

    @functools.wraps(command)
    def with_grid(*args: Any, grid: Path, given: tuple[str, ...], **others: Any) -> Any:
        keys = {setting.partition("=")[0].strip() for setting in given}
        for option, key in (("parallel", "limits.parallel"), ("host", "host")):
            if key in keys and others.get(option) is not None:
                raise UserError(f"--{option} and --set {key} both give `{key}`", "leave one of them out")
        return command(*args, grid=GridChoice(grid, given), **others)

    argument = click.argument("grid", type=click.Path(path_type=Path), metavar="GRID", envvar=envvar)
    return argument(_SET(with_grid))


class Target(NamedTuple):
    """A run, and the way to its host."""

    transport: Transport
    run: str
    directory: str
    options: str = ""
    """options with which a later command finds the host"""
    away: HostError | None = None
    """set if the host does not answer: then only the copy on this machine can be used"""

    def source(self) -> Source:
        from comborun.monitor.observe import load_run
        from comborun.monitor.watch import Source

        return Source(self.transport, load_run(self.transport, self.directory))

    def bring(self, options: FetchOptions | None = None) -> Copy:
        """Copy its records to this machine.

        If the host does not answer, prints the age of the last copy. Raises HostError if there is none.
        """
        if self.away:
            age = age_of_copy(self.transport.host, self.run, self.directory)
            if age is None:
                raise self.away
            click.echo(f"! {harmless(self.away.message)}", err=True)
            click.echo(f"! the records were copied {brief(age)} ago", err=True)
            return copy_of(self.transport.host, self.run, self.directory), ()
        copy = bring_records(self.transport, self.run, self.directory, options)
        assert copy  # only a copy beside a live table may stop early
        return copy

    def bring_some(self) -> Copy | None:
        """The same beside a live table, for some seconds; None if that was not enough."""
        from comborun.remote.fetch import FetchOptions

        return bring_records(self.transport, self.run, self.directory, FetchOptions(watched=True))

    def own(self, *, take_over: bool) -> None:
        """Take the run over from another machine, if the user says so."""
        if take_over:
            from comborun.remote import program as host_program

            note("\n".join(host_program.take_over(self.transport, self.directory)))

    def note_change(self) -> None:
        """Print that the grid's file has changed since its launch: only another launch uses the changes."""
        if launch := changed_since(self.run):
            path = Path(launch.file)
            name = path.name if path.parent == Path.cwd() else launch.file
            command = f"{program()} launch {shlex.quote(name)}{launch.options}"
            note(f"{name} has changed since the launch: `{command}` uses the change")

    def command(self, verb: str, session: str = "") -> str:
        """A command for this run, or for a session of it, as the user can type it."""
        which = f"{session} --run {self.run}" if session else self.run
        return f"{program()} {verb} {which}{self.options}"


@dataclass(frozen=True)
class HostChoice:
    """The host that the user named, if any, and the folder of its runs."""

    host: str | None = None
    transport: str | None = None
    """ssh or openssh"""
    accept_new: bool = False
    root: str | None = None

    def connect(self, otherwise: str | None = None) -> Transport:
        """The transport to the host, or to `otherwise` if none was named. It is closed at the end of the command."""
        host = self.host or otherwise or LOCAL
        opened = LocalTransport() if host == LOCAL else self._open(host)
        if context := click.get_current_context(silent=True):
            context.call_on_close(lambda: _close(opened))
        return opened

    def way(self, host: str) -> str:
        """ssh or openssh: the option's value, else that of the latest launch on that host."""
        launches = [launch.transport for launch in remembered() if launch.host == host]
        return self.transport or (launches[-1] if launches else "ssh")

    def options(self, host: str) -> str:
        """Options with which a command finds the same host from any laptop."""
        if host == LOCAL:
            return ""
        way = self.way(host)
        root = f" --root {shlex.quote(self.root)}" if self.root and self.root != DEFAULT_ROOT else ""
        return f" --host {shlex.quote(host)}" + (f" --transport {way}" if way != "ssh" else "") + root

    def find(self, wanted: str | None, *, kept: bool = False) -> Target:
        """A run by its id or the start of it, its grid, grid file or directory; or the newest run.

        With `kept`, this machine's memory is used if the host does not answer.
        """
        if self.host is None and wanted and "/" in wanted and (Path(wanted) / RUN.manifest).is_file():
            directory = Path(wanted).resolve()
            return Target(self.connect(), directory.name, str(directory))
        if wanted and (at := self.of_grid(Path(wanted))):
            return at[0].find(at[1], kept=kept)
        transport = self.connect(host_of(wanted))
        try:
            with working(f"asking {transport.host}"):
                there = self.runs(transport)
            run = choose_run(there, wanted, transport.host)
        except HostError as error:
            if self.host is None and transport.host != LOCAL:
                error.hint += f"\n  the last launch was on {transport.host}; --host {LOCAL} means this machine"
            launches = [one for one in remembered() if one.host == transport.host and one.fits(wanted)]
            if not kept or not launches:
                raise
            last = launches[-1]
            return Target(transport, last.run, last.directory, self.options(transport.host), error)
        return Target(transport, run.id, run.directory, self.options(transport.host))

    def of_grid(self, path: Path) -> tuple[HostChoice, str] | None:
        """Where the runs of a grid file are, whoever launched them, and the grid's name; None for another file."""
        if path.suffix not in {".yaml", ".yml"} or not path.is_file():
            return None
        name, host, root = _place_of(path)
        return replace(self, host=self.host or host_of(name) or host, root=self.root or root), name

    def runs(self, transport: Transport) -> tuple[Run, ...]:
        """The runs on a host: below `root`, or below every known root."""
        return list_runs(transport, self._roots(transport))

    def everywhere(self) -> dict[str, Transport]:
        """The named host; else this machine and every host of a launch from here, the latest first."""
        everywhere = dict.fromkeys([LOCAL, *(launch.host for launch in reversed(remembered()))])
        return {host: self.connect(host) for host in ([self.host] if self.host else everywhere)}

    def look(self, transport: Transport) -> tuple[tuple[Run, ...], tuple[GpuUser, ...]]:
        """The runs on a host, and who uses its GPUs."""
        return look_at_host(transport, self._roots(transport))

    def _roots(self, transport: Transport) -> tuple[str, ...]:
        memory = [launch.root for launch in reversed(remembered()) if launch.host == transport.host]
        return (self.root,) if self.root else (DEFAULT_ROOT, *memory)

    def _open(self, host: str) -> ShellTransport:
        from comborun.remote.ssh.config import Options
        from comborun.remote.ssh.openssh import OpensshTransport
        from comborun.remote.ssh.transport import SshTransport

        options = Options(accept_new=self.accept_new, ask=ask_secret if sys.stdin.isatty() else None)
        return OpensshTransport(host, options) if self.way(host) == "openssh" else SshTransport(host, options)


def _place_of(path: Path) -> tuple[str, str | None, str]:
    """A grid's name, host and root. Reads the whole grid only if they are not simple lines."""
    text = path.read_text("utf-8", errors="replace")
    plain = dict(_PLAIN.findall(text))
    if "name" in plain and len(_PLACE.findall(text)) == len(plain):
        return shortened(clean(plain["name"]), plain["name"]), plain.get("host"), plain.get("root", DEFAULT_ROOT)
    from comborun.grid import load_grid

    grid = load_grid(path)
    return grid.name, grid.host, grid.root


def host_options(command: Command) -> Command:
    """Gives a command the options that name a host, as one argument `where`."""

    @functools.wraps(command)
    def with_where(*args: Any, host: str | None, transport: Any, accept_new: bool, **others: Any) -> Any:
        return command(*args, where=HostChoice(host, transport, accept_new, others.pop("root", None)), **others)

    for option in reversed(_HOST):
        with_where = option(with_where)
    return with_where


def root_options(command: Command) -> Command:
    """The same with the folder of the runs on the host."""
    return host_options(_ROOT(command))


def of_run(command: Command, *, kept: bool = False) -> Command:
    """Gives a command the argument and the options that name a run, as one argument `target`.

    With `kept` this may be a run whose host does not answer.
    """
    return _RUN_ARGUMENT(of_run_option(command, kept=kept))


def one_run(argument: str | None, option: str | None) -> str | None:
    """The run of the argument or of --run. Raises UserError if they name two different runs."""
    if argument and option and argument != option:
        raise UserError(f"two runs are named: {argument}, and {option} by --run", "name one of them")
    return argument or option


def of_run_option(command: Command, *, kept: bool = False) -> Command:
    """The same for commands with other arguments: the run is an option. With the option `everywhere`, the target of the
    command is the choice of hosts.
    """

    @functools.wraps(command)
    def with_target(*args: Any, where: HostChoice, wanted: str | None, run: str | None = None, **others: Any) -> Any:
        named = one_run(run, wanted)
        if not others.get("everywhere"):
            return command(*args, target=where.find(named, kept=kept), **others)
        if named:
            raise UserError(f"--all shows all runs, and {named} is one of them", "leave one of the two out")
        return command(*args, target=where, **others)

    return run_option(root_options(with_target))


def _close(opened: LocalTransport | ShellTransport) -> None:
    """Close the connection and print its warnings, such as skipped ssh settings."""
    if not isinstance(opened, LocalTransport):
        opened.close()
    for warning in opened.warnings:
        note(warning)


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a script that completes commands, options, runs, sessions, hosts, presets and keys.

    \b
    combo completion bash >> ~/.bashrc
    """
    from click.shell_completion import get_completion_class

    from comborun.cli import combo

    kind = get_completion_class(shell)
    assert kind
    click.echo(kind(combo, {}, "combo", "_COMBO_COMPLETE").source())


def words(what: str, context: click.Context) -> list[str]:
    """The words for hosts, runs, presets, topics of `combo docs`, or sessions of the run that --run names."""
    match what:
        case "hosts":
            return [LOCAL, *(launch.host for launch in reversed(remembered()))]
        case "runs":
            return [launch.run for launch in reversed(remembered())]
        case "presets":
            from comborun.grid import known_presets

            return [*known_presets()]
        case "topics":
            from comborun.reference import pages, reference_keys

            found = pages()
            return [*found, *reference_keys(found["grid"].read_text("utf-8"))]
    wanted = context.params.get("wanted") or ""
    launches = [launch for launch in remembered() if launch.run.startswith(wanted) or launch.grid == wanted]
    plan = _plan(launches[-1]) if launches else None
    return [one.name for one in plan.current] if plan else []


def _plan(launch: Launch) -> Plan | None:
    if launch.host != LOCAL:
        from comborun.monitor.observe import last_look

        kept = last_look(launch.host, launch.run, launch.directory)
        return kept.view.plan if kept else None
    try:
        return plan_of(copy_of(launch.host, launch.run, launch.directory))[0]
    except (OSError, ValueError):
        return None
