"""What a user names: a grid file with its settings, a host, a run."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from comborun.api.listener import QUIET, Listener
from comborun.errors import HostError, UserError
from comborun.remote.launches import Launch, changed_since, fitting, host_of, parts_of, remembered, short
from comborun.remote.runs import (
    GpuUser,
    Run,
    age_of_copy,
    bring_records,
    choose_run,
    copy_of,
    find_runs,
    list_runs,
    look_at_host,
)
from comborun.remote.transport import LOCAL, RUNS_SESSIONS, LocalTransport, in_threads
from comborun.rules.names import DEFAULT_ROOT, RUN
from comborun.text import clean, harmless, shortened
from comborun.words.times import brief

if TYPE_CHECKING:
    from collections.abc import Mapping

    from comborun.grid import Grid
    from comborun.monitor.watch import Source
    from comborun.remote.fetch import FetchOptions
    from comborun.remote.mirror import Skipped
    from comborun.remote.runs import SentPlan
    from comborun.remote.ssh.shell import ShellTransport
    from comborun.remote.transport import Transport

    Copy = tuple[Path, tuple[Skipped, ...]]
    """where the records of a run are on this machine, and what could not be brought here"""

_PLACE = re.compile(r"""^["']?(name|hosts?|root)\b""", re.MULTILINE)
_PLAIN = re.compile(
    r"^(name|host|root): +(?!(?i:~|null|true|false) *$)([A-Za-z~/][\w@./~-]*)(?: +#.*| *)$", re.MULTILINE | re.ASCII
)


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


class Target(NamedTuple):
    """A run, and the way to its host."""

    transport: Transport
    run: str
    directory: str
    options: str = ""
    """options with which a later command finds the host"""
    away: HostError | None = None
    """set if the host does not answer: then only the copy on this machine can be used"""
    listener: Listener = QUIET
    boxes: tuple[Target, ...] = ()
    """the parts of a run on several hosts, that of the first host first; this target is the first one, too"""
    listed: tuple[Run, ...] = ()
    """the runs of its host, as they were when this one was found; empty if none were asked for"""
    sent: SentPlan | None = None
    """its plan, if it came with them"""

    @property
    def same_program(self) -> bool:
        """Whether the run on its host is known to have the program that would be sent there."""
        from comborun.remote.library import digest

        return self.sent is not None and self.sent.program == digest()

    @property
    def place(self) -> tuple[Transport, str]:
        """Its host and its folder there."""
        return self.transport, self.directory

    @property
    def answering(self) -> Target:
        """The run. Raises HostError if its host did not answer."""
        if self.away:
            raise self.away
        return self

    def of_one_host(self, verb: str) -> Target:
        """The run. Raises UserError for one on several hosts, since the command is for one of them."""
        if not self.boxes:
            return self
        hosts, name = [one.transport.host for one in self.boxes], self.listener.program
        raise UserError(
            f"{self.run} runs on {', '.join(hosts)}, and `{name} {verb}` is for one host",
            f"{name} {verb} {self.run} --host {hosts[0]}",
            code="several_hosts",
        )

    def source(self) -> Source:
        from comborun.monitor.observe import load_run
        from comborun.monitor.watch import Source

        return Source(self.transport, load_run(self.transport, self.directory, self.sent))

    def bring(self, options: FetchOptions | None = None) -> Copy:
        """Copy its records to this machine.

        If the host does not answer, tells the age of the last copy. Raises HostError if there is none.
        """
        if self.boxes:
            from comborun.remote.joint_copy import Part, joint_copy

            parts = [Part(one.transport.host, one.run, one.bring_or_copy(options)) for one in self.boxes]
            return joint_copy(self.run, [part for part in parts if part.copy])
        if self.away:
            age = age_of_copy(self.transport.host, self.run, self.directory)
            if age is None:
                raise self.away
            self.listener.tell(f"! {harmless(self.away.message)}")
            self.listener.tell(f"! the records were copied {brief(age)} ago")
            return copy_of(self.transport.host, self.run, self.directory), ()
        copy = bring_records(self.transport, self.run, self.directory, options)
        # beside a live view it may lack some
        return copy or (copy_of(self.transport.host, self.run, self.directory), ())

    def bring_or_copy(self, options: FetchOptions | None = None) -> Copy | None:
        """The same; of a host that is away the last copy. None if there is none."""
        try:
            return self.bring(options)
        except HostError as error:
            try:
                return self._replace(away=error).bring(options)
            except HostError:
                self.listener.tell(f"! {harmless(error.message)}; there is no copy of its records here")
                return None

    def bring_some(self) -> Copy | None:
        """The same beside a live table, for some seconds; None if that was not enough."""
        from comborun.remote.fetch import FetchOptions

        return bring_records(self.transport, self.run, self.directory, FetchOptions(watched=True))

    def own(self, *, take_over: bool) -> None:
        """Take the run over from another machine, if the user says so."""
        if take_over:
            from comborun.remote import run_orders

            self.listener.note("\n".join(run_orders.take_over(self.transport, self.directory)))

    def note_change(self) -> None:
        """Tell that the grid's file has changed since its launch: only another launch uses the changes."""
        if launch := changed_since(self.run):
            path = Path(launch.file)
            name = path.name if path.parent == Path.cwd() else launch.file
            command = f"{self.listener.program} launch {shlex.quote(name)}{launch.options}"
            self.listener.note(f"{name} has changed since the launch: `{command}` uses the change")

    def command(self, verb: str, session: str = "") -> str:
        """A command for this run, or for a session of it, as the user can type it."""
        which = f"{session} --run {self.run}" if session else self.run
        return f"{self.listener.program} {verb} {which}{self.options}"


@dataclass(frozen=True)
class HostChoice:
    """The host that the user named, if any, and the folder of its runs."""

    host: str | None = None
    transport: str | None = None
    """ssh or openssh"""
    accept_new: bool = False
    root: str | None = None
    listener: Listener = QUIET
    hosts: Mapping[str, str | None] = field(default_factory=dict[str, "str | None"])
    """the hosts that share a run, if several were named, each with the folder of its runs if that is known"""

    @property
    def named(self) -> bool:
        """Whether any host was named."""
        return bool(self.host or self.hosts)

    def connect(self, otherwise: str | None = None) -> Transport:
        """The transport to the host, or to `otherwise` if none was named. The listener may close it."""
        if self.hosts:
            raise UserError(f"this is for one host, and {' and '.join(self.hosts)} are named", "give --host once")
        host = self.host or otherwise or LOCAL
        if host == LOCAL and not RUNS_SESSIONS:
            raise UserError("sessions need Linux: give --host", "an ssh alias or user@host:port; this machine has none")
        opened = LocalTransport(forks=self.listener.forks) if host == LOCAL else self._open(host)
        self.listener.opened(opened)
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
        here = bool(not self.named and wanted and (Path(wanted) / RUN.manifest).is_file())
        if here and wanted and "/" in wanted:
            return self._in_folder(wanted)
        at = self.of_grid(Path(wanted)) if wanted else None
        if parts := self.parts(at[1] if at else wanted):
            return self._joint(parts)
        if at:
            return at[0].find(at[1], kept=kept)
        transport = self.connect(host_of(wanted))
        try:
            with self.listener.working(f"asking {transport.host}"):
                there, sent = find_runs(transport, self._roots(transport), wanted)
            run = choose_run(there, wanted, transport.host)
        except HostError as error:
            if self.host is None and transport.host != LOCAL:
                error.hint += f"\n  the last launch was on {transport.host}; --host {LOCAL} means this machine"
            launches = [one for one in fitting(wanted) if one.host == transport.host]
            if not kept or not launches:
                raise
            last = launches[-1]
            return Target(transport, last.run, last.directory, self.options(transport.host), error, self.listener)
        except UserError:
            if here and wanted:  # a copy that was moved or renamed
                return self._in_folder(wanted)
            raise
        options = self.options(transport.host)
        return Target(transport, run.id, run.directory, options, listener=self.listener, listed=there, sent=sent)

    def _in_folder(self, path: str) -> Target:
        directory = Path(path).resolve()
        return Target(self.connect(), directory.name, str(directory), listener=self.listener)

    def parts(self, wanted: str | None) -> tuple[Launch, ...]:
        """The parts of a run on several hosts, that of the first host first: as this machine's memory has it, or, if
        several hosts are named, as these say. Empty for another run. Raises UserError.
        """
        if not self.named:
            return parts_of(wanted)
        return self._found_parts(wanted) if self.hosts else ()

    def _found_parts(self, wanted: str | None) -> tuple[Launch, ...]:
        from comborun.remote.boxes import at_once

        with self.listener.working(f"asking {', '.join(self.hosts)}"):
            each = {host: self._on(host, root) for host, root in self.hosts.items()}
            found = at_once({host: partial(one.shared_runs, wanted) for host, one in each.items()})
        every = [(host, run) for host, runs in found.some().items() for run in runs]
        named = [run for _, run in every if wanted in {run.id, run.grid_run, run.directory, run.grid, short(run.id)}]
        named = named or [run for _, run in every if wanted is None or run.id.startswith(wanted)]
        if not named:
            which = f" {wanted!r}" if wanted else ""
            raise UserError(
                f"{' and '.join(found.done)} share no run{which}",
                "`combo runs --host H` lists the runs of one of them",
                code="unknown_run",
            )
        newest = max(named, key=lambda run: run.started)
        parts, hosts = [], newest.hosts
        for host, run in every:
            if run.grid_run != newest.grid_run:
                continue
            if host != (box := str(run.part.get("box"))):
                raise UserError(
                    f"{host} is called {box} in this run", f"name it so: --host {box}, an alias of ssh here"
                )
            root = str(PurePosixPath(run.directory).parent)
            launch = Launch(run.id, host, root, run.directory, run.grid, self.way(host), grid_run=run.grid_run)
            parts.append(launch._replace(place=hosts.index(host)))
        for host in (one for one in hosts if one not in {part.host for part in parts}):
            why = f": {found.failed[host].message}" if host in found.failed else "; name it, too"
            self.listener.note(f"the part of {host} is not known here{why}")
        return tuple(sorted(parts, key=lambda one: one.place))

    def _on(self, host: str, root: str | None = None) -> HostChoice:
        return replace(self, host=host, hosts={}, root=root or self.root)

    def shared_runs(self, wanted: str | None) -> list[Run]:
        transport = in_threads(self.connect())
        return [run for run in find_runs(transport, self._roots(transport), wanted)[0] if run.grid_run]

    def _joint(self, parts: tuple[Launch, ...]) -> Target:
        """A run on several hosts, as this machine's memory has it. No host is asked."""
        found = []
        for one in parts:
            where = self._on(one.host, one.root)
            transport = in_threads(where.connect())
            found.append(Target(transport, one.run, one.directory, where.options(one.host), listener=self.listener))
        return found[0]._replace(boxes=tuple(found), options="")

    def of_grid(self, path: Path) -> tuple[HostChoice, str] | None:
        """Where the runs of a grid file are, whoever launched them, and the grid's name; None for another file."""
        if not is_grid(path):
            return None
        name, host, root, hosts = _place_of(path)
        if hosts and not self.named and not host_of(name):
            return replace(self, hosts=hosts, root=self.root or root), name
        host = self.host or (None if self.hosts else host_of(name) or host)
        return replace(self, host=host, root=self.root or root), name

    def runs(self, transport: Transport) -> tuple[Run, ...]:
        """The runs on a host: below `root`, or below every known root."""
        return list_runs(transport, self._roots(transport))

    def everywhere(self) -> dict[str, Transport]:
        """The named host; else this machine and every host of a launch from here, the latest first."""
        everywhere = dict.fromkeys([LOCAL, *(launch.host for launch in reversed(remembered()))])
        if not RUNS_SESSIONS and len(everywhere) > 1:
            del everywhere[LOCAL]
        chosen = [self.host] if self.host else [*self.hosts] or everywhere
        return {host: self._on(host).connect() for host in chosen}

    def look(self, transport: Transport) -> tuple[tuple[Run, ...], tuple[GpuUser, ...]]:
        """The runs on a host, and who uses its GPUs."""
        return look_at_host(transport, self._roots(transport))

    def _roots(self, transport: Transport) -> tuple[str, ...]:
        memory = [launch.root for launch in reversed(remembered()) if launch.host == transport.host]
        return (self.root,) if self.root else (DEFAULT_ROOT, *memory)

    def _open(self, host: str) -> ShellTransport:
        from comborun.remote.ssh.config import Options
        from comborun.remote.ssh.keeping import keep_seconds

        listener = self.listener
        options = Options(accept_new=self.accept_new, ask=listener.ask, confirm=listener.agree, keep_s=keep_seconds())
        if self.way(host) == "openssh":
            from comborun.remote.ssh.openssh import OpensshTransport

            return OpensshTransport(host, options)
        if options.keep_s:
            from comborun.remote.ssh.kept import KeptTransport

            return KeptTransport(host, options)
        from comborun.remote.ssh.transport import SshTransport

        return SshTransport(host, options)


def is_grid(path: Path) -> bool:
    """Whether a path is that of a grid's file, by its name."""
    return path.suffix in {".yaml", ".yml"} and path.is_file()


def _place_of(path: Path) -> tuple[str, str | None, str, Mapping[str, str | None]]:
    """A grid's name, host, root, and hosts with their own roots. Simple lines are enough, else it reads all."""
    text = path.read_text("utf-8", errors="replace")
    plain = dict(_PLAIN.findall(text))
    if "name" in plain and len(_PLACE.findall(text)) == len(plain):
        return shortened(clean(plain["name"]), plain["name"]), plain.get("host"), plain.get("root", DEFAULT_ROOT), {}
    from comborun.grid import load_grid

    grid = load_grid(path)
    return grid.name, grid.host, grid.root, {one.host: one.root for one in grid.hosts}
