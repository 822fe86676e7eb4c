"""Arguments and options that commands share, and words that a shell completes."""

from __future__ import annotations

import functools
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from comborun.answers import Done
from comborun.api.named import GridChoice, HostChoice
from comborun.cli.terminal import TERMINAL, show_json, show_record, show_text
from comborun.errors import UserError
from comborun.remote.launches import remembered
from comborun.remote.runs import copy_of, plan_of
from comborun.remote.transport import LOCAL
from comborun.text import harmless

if TYPE_CHECKING:
    from collections.abc import Callable

    from comborun.model.plan import Plan
    from comborun.monitor.screen import StatusScreen
    from comborun.remote.launches import Launch

    Command = Callable[..., Any]

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


def json_lines_option(command: Command) -> Command:
    """`--json` of a command that answers with records, one on a line; the last is `done`."""

    @functools.wraps(command)
    def to_the_end(*args: Any, as_json: bool, **others: Any) -> int:
        code = command(*args, as_json=as_json, **others) or 0
        if as_json and not others.get("just_once"):  # that is one document
            show_record(Done(code))
        return code

    words = "Answer with JSON objects, one on a line; the last one has the exit code."
    return click.option("--json", "as_json", is_flag=True, help=words)(to_the_end)


interval_option = click.option(
    "--interval", type=click.FloatRange(min=0.2), metavar="S", help="Seconds between two looks; by default `poll`."
)
plain_option = click.option("--plain", is_flag=True, help="Print lines instead of using the whole screen.")

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


def with_options(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Gives a command several options, in this order."""

    def give(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return give


slurm_option = click.option("--slurm", is_flag=True, help="Submit the sessions to Slurm as job arrays.")


class Shown(NamedTuple):
    interval: float | None = None
    """seconds between two looks"""
    plain: bool = False
    as_json: bool = False

    @property
    def full(self) -> bool:
        """Whether the whole screen can be used: it needs a terminal that moves its cursor, and keys."""
        streams = (sys.stdin, sys.stdout, sys.stderr)  # textual draws on the last one
        able = all(one.isatty() for one in streams) and os.environ.get("TERM") not in {"dumb", "unknown"}
        return able and not self.plain and not self.as_json

    def screen(self) -> StatusScreen:
        from rich.console import Console

        from comborun.monitor.screen import JsonScreen, PlainScreen

        if self.as_json:
            return JsonScreen(lambda text: click.echo(text, nl=False))
        return PlainScreen(Console(highlight=False))


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
        multiple=True,
        help="An ssh alias, user@host:port, or `local`; by default that of the grid or of the run. Given"
        " several times: the hosts of one run, which another machine has launched.",
    ),
    click.option(
        "--transport",
        type=click.Choice(["ssh", "openssh"]),
        help="How to reach the host; by default as at the launch, else ssh.",
    ),
    click.option("--accept-new", is_flag=True, help="Trust a host whose key is not known yet, and remember the key."),
)
_HOSTS = click.option(
    "--host",
    multiple=True,
    metavar="H",
    shell_complete=offers("hosts"),
    help="An ssh alias, user@host:port, or `local`; by default that of the grid. Given several times, these hosts share"
    " the sessions.",
)
_OPENING = {"wanted", "root", "host", "transport", "accept_new"}
"""parameters that find a run or open its host; many commands have them"""


def order_options(command: click.Command) -> None:
    """Put the options that only find a run or open its host last in the help."""
    command.params.sort(key=lambda one: one.name in _OPENING)
    for below in command.commands.values() if isinstance(command, click.Group) else ():
        order_options(below)


def grid_argument(command: Command, envvar: str | None = None) -> Command:
    """Gives a command a grid file and `--set`, as one argument `grid`."""

    @functools.wraps(command)
    def with_grid(*args: Any, grid: Path, given: tuple[str, ...], **others: Any) -> Any:
        keys = {setting.partition("=")[0].strip() for setting in given}
        for option, key in (("parallel", "limits.parallel"), ("host", "host")):
            if key in keys and others.get(option) not in (None, ()):
                raise UserError(f"--{option} and --set {key} both give `{key}`", "leave one of them out")
        return command(*args, grid=GridChoice(grid, given), **others)

    argument = click.argument("grid", type=click.Path(path_type=Path), metavar="GRID", envvar=envvar)
    return argument(_SET(with_grid))


def host_options(command: Command) -> Command:
    """Gives a command the options that name a host, as one argument `where`."""

    @functools.wraps(command)
    def with_where(*args: Any, host: tuple[str, ...], transport: Any, accept_new: bool, **others: Any) -> Any:
        one, several = (host[0], ()) if len({*host}) == 1 else (None, host)
        where = HostChoice(one, transport, accept_new, others.pop("root", None), TERMINAL, dict.fromkeys(several))
        return command(*args, where=where, **others)

    return with_options(*_HOST)(with_where)


def hosts_options(command: Command) -> Command:
    """The same for a launch: `--host` may be given several times; then `hosts` has all of them, and `where` none."""

    @functools.wraps(command)
    def with_hosts(*args: Any, host: tuple[str, ...], transport: Any, accept_new: bool, **others: Any) -> Any:
        hosts = tuple(dict.fromkeys(host))
        where = HostChoice(hosts[0] if len(hosts) == 1 else None, transport, accept_new, None, TERMINAL)
        return command(*args, where=where, hosts=hosts, **others)

    return with_options(_HOSTS, *_HOST[1:])(with_hosts)


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


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@json_option
def completion(shell: str, as_json: bool) -> None:
    """Print a script that completes commands, options, runs, sessions, hosts, presets and keys.

    \b
    combo completion bash >> ~/.bashrc
    """
    from click.shell_completion import get_completion_class

    from comborun.answers.grids import Text
    from comborun.cli import combo

    kind = get_completion_class(shell)
    assert kind
    show_text(Text(shell, kind(combo, {}, "combo", "_COMBO_COMPLETE").source() + "\n"), as_json=as_json)


@click.command()
@click.argument("host", required=False, shell_complete=offers("hosts"))
@json_option
def disconnect(host: str | None, as_json: bool) -> None:
    """End the connections to a host, or to all hosts, that earlier commands have kept open.

    Nothing that runs on a host ends. A ControlMaster of your own stays.

    \b
    combo disconnect
    combo disconnect h100
    """
    from comborun.remote.ssh.keeping import all_kept

    found = [(one.host, one) for one in all_kept()]
    ended = dict.fromkeys(name for name, one in found if host in (None, name) and one.end())
    if as_json:
        from comborun.answers.grids import Disconnected

        show_json(Disconnected(tuple(ended)))
        return
    for name in ended:
        click.echo(harmless(f"disconnected from {name or 'a host'}"))
    if not ended:
        click.echo("no connection is kept" + (harmless(f" to {host}") if host else ""))


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
