"""Orders to a run: start, steer, stop. All are safe to repeat."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from comborun.errors import HostError, UserError
from comborun.host.verb_errors import CANT_WRITE, ELSEWHERE, USAGE
from comborun.remote import program
from comborun.rules import environment
from comborun.rules.facts import Fact
from comborun.rules.host import Denial
from comborun.rules.names import RUN
from comborun.text import harmless
from comborun.words import say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from comborun.model.plan import Plan, SecretSource
    from comborun.remote.transport import Completed, Transport

_ORDER = f"export COMBORUN_JSON_LINES=1\n{program.OF_RUN}"
"""each line that the program prints is a JSON object; a former comborun prints words all the same"""
Verb = Literal["pause", "drain", "resume", "slots", "set", "retry"]
_OLD_STOP = 'cd -- "$1" && shift && exec bash lib/stop.sh . "$@"'
_SAID = f"""
cd -- "$1" || exit 73
cat {RUN.out} {RUN.events} 2>/dev/null | grep -v '"kind": "gpu_use"' | tail -n 20
"""
_STOP_S = 900.0
"""seconds; a stop has its own limits, and an early end would leave it incomplete"""
_STEER_S = 120.0
"""seconds; the notify command may take a minute"""


@dataclass(frozen=True)
class StartOptions:
    parallel: int | None = None
    """sessions at once; None: as the plan says, or as was set before"""
    multiplexer: str | None = None
    """None: tmux if there is one, else screen"""
    secrets: bytes = field(default=b"", repr=False)
    """from `laptop_secrets`; they travel on standard input, and no value is in an argument, a message or a record"""
    environment: str = ""
    """`first`: the variables of the first launch are used"""
    follow: str = ""
    """the pid of the training that the run follows, or `stopped`"""
    moves: bool = False
    """whether it is for sessions that have come from another host only: nothing is tried again, and a stop stays"""


class Beginning(Enum):
    """How a run begins; the values are exit codes."""

    BEGUN = 0
    """a session has begun"""
    NOT_BEGUN = 1
    """none has begun in time, or none will: the run is halted, or over"""
    WAITS = 75
    """none has begun, and for two seconds the first ones have waited for resources of the host: memory, cores, a GPU. A
    loading model server does not count, because it may fail in time
    """


class Line(NamedTuple):
    """A line that an order has printed."""

    text: str
    facts: Mapping[str, Any]
    """`session`, `replaced`, `refused` ...; empty if the command of a user or a former comborun printed it"""


@dataclass(frozen=True)
class Reply:
    lines: tuple[Line, ...]
    """one for each session or action"""
    code: int

    @property
    def done(self) -> bool:
        """Whether all have ended (of a stop), or whether anything was changed."""
        return self.code == 0

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(line.text for line in self.lines)

    @property
    def refused(self) -> str:
        """Why the order can't be carried out; empty if it can."""
        return next((line.text for line in self.lines if "refused" in line.facts), "")

    def facts(self, name: str) -> tuple[Any, ...]:
        """The values of a fact, each once."""
        found = [line.facts[name] for line in self.lines if name in line.facts]
        return tuple(one for place, one in enumerate(found) if one not in found[:place])


def laptop_secrets(secrets: Mapping[str, SecretSource], environment: Mapping[str, str] = os.environ) -> bytes:
    """`NAME=VALUE` and a NUL for each secret of this machine. Raises UserError if one is not set, or empty."""
    names = [name for name, source in secrets.items() if source == "laptop"]
    if missing := [name for name in names if not environment.get(name)]:
        raise UserError(
            f"secrets: this machine's environment has no {', '.join(missing)}",
            f"export {missing[0]}=... before the launch, or say `{missing[0]}: host` when the host has it",
        )
    entries = (f"{name}={environment[name]}\0" for name in names)
    return "".join(entries).encode("utf-8", "surrogateescape")


def start(transport: Transport, directory: str, options: StartOptions) -> Reply:
    """Start or resume the dispatcher of a run. It takes long if the user's old sessions must end first."""
    arguments: list[str] = []
    if options.parallel is not None:
        arguments += ["--parallel", str(options.parallel)]
    if options.multiplexer is not None:
        arguments += ["--multiplexer", options.multiplexer]
    if options.environment == "first":  # a run of the former version does not know the option
        arguments += ["--environment", "first"]
    if options.follow:
        arguments += ["--follow", options.follow]
    if options.secrets:
        arguments += ["--secrets", "-"]
    given = [*arguments, *(["--for", "moves"] if options.moves else [])]
    done = _order(transport, directory, "start", *given, stdin=options.secrets, timeout=240)
    if done.code == USAGE and options.moves:  # a run of the former version
        done = _order(transport, directory, "start", *arguments, stdin=options.secrets, timeout=240)
    if done.code:
        texts = _reply(done).texts
        raise HostError(f"the run {directory} could not be started on {transport.host}", "\n".join(texts))
    reply = _reply(done._replace(stderr=b""))
    told = [line for line in reply.lines if (line.facts.get("fact") or {}).get("code") == environment.DIFFERS]
    return Reply(tuple(line for line in reply.lines if line not in told), reply.code)  # a look before has told it


def restart_dispatcher(transport: Transport, directory: str, plan: Plan, variables: str = "") -> str:
    """Start a missing dispatcher of a run; returns sentences about it. Raises UserError if a secret is missing."""
    options = StartOptions(secrets=laptop_secrets(dict(plan.secrets)), environment=variables)
    return "\n".join(start(transport, directory, options).texts)


def start_for_moves(transport: Transport, directory: str, plan: Plan) -> str:
    """The same for sessions that have come from another host: it has the variables of the first launch."""
    secrets = laptop_secrets(dict(plan.secrets))
    return "\n".join(start(transport, directory, StartOptions(None, None, secrets, "first", moves=True)).texts)


def take_over(transport: Transport, directory: str) -> tuple[str, ...]:
    """Make the host the owner of a run of another machine; returns a line for each thing done. Safe to repeat."""
    reply = _reply(_order(transport, directory, "take-over", timeout=_STOP_S))
    if reply.code:
        raise HostError(f"{directory} can't be taken over", "\n".join(reply.texts))
    return reply.texts


def ask(transport: Transport, directory: str, verb: str, *words: str, stdin: bytes = b"") -> Any:
    """The JSON document of a verb that writes. Raises UserError with the code of the host's refusal."""
    done = _order(transport, directory, verb, *words, stdin=stdin, timeout=60.0)
    facts = _reply(done).facts("fact") if done.code else ()
    if refused := Fact.of(facts[0]) if facts else None:
        raise UserError(f"{transport.host}: {say(refused)}", code=str(refused.code))
    return program.answer(transport, done, f"{transport.host} can't answer about {directory}")


def await_first(transport: Transport, directory: str, seconds: float) -> Beginning:
    """Wait for the first begin record."""
    done = program.run(transport, directory, "begun", f"{seconds:g}", timeout=seconds + 30)
    try:
        return Beginning(done.code)
    except ValueError:
        raise HostError(f"{directory} on {transport.host} can't be read", done.complaint) from None


def dispatcher_output(transport: Transport, directory: str) -> str:
    """The last lines of a dispatcher's output and of the events."""
    done = transport.run(_SAID, directory, timeout=30)
    return done.text.strip() or done.complaint


def stop(transport: Transport, directory: str, sessions: tuple[str, ...] = ()) -> Reply:
    """End sessions, or the whole run if none is named: INT, TERM, KILL, then a sweep by marker.

    A run of an older version is stopped by its own script.
    """
    done = _order(transport, directory, "stop", *sessions, timeout=_STOP_S, older=_OLD_STOP)
    return _reply(done)


def steer(transport: Transport, directory: str, verb: Verb, *words: str) -> Reply:
    """Send an order to a run. Raises UserError if the run can't do it, HostError if the host can't write, or another
    process holds a lock.
    """
    reply = _reply(_order(transport, directory, "control", verb, *words, timeout=_STEER_S))
    said = reply.refused or reply.texts[-1] if reply.lines else f"exit code {reply.code}"
    if reply.code in (64, 66):
        hint = "`combo set --help` says what can be set" if verb == "set" else "combo status names the sessions"
        raise UserError(said, hint)
    held = any(fact.get("code") == Denial.LOCK_HELD for fact in reply.facts("fact"))
    if held or reply.code == CANT_WRITE:
        hint = "try again when that one has ended" if held else "check its free disk space, and that the run is yours"
        raise HostError(f"nothing was changed on {transport.host}: {said}", hint)
    return reply


def send_decisions(transport: Transport, directory: str, decisions: str, not_needed: Sequence[str]) -> tuple[str, ...]:
    """Record decisions, a line each, and end their sessions that have not begun. Returns a line for each new thing.

    Raises HostError if the host can't be reached or can't write.
    """
    stdin = decisions.encode("utf-8", "surrogateescape")
    reply = _reply(_order(transport, directory, "control", "decided", *not_needed, stdin=stdin, timeout=_STEER_S))
    if not reply.done:
        raise HostError(f"decisions could not be written on {transport.host}", "\n".join(reply.texts))
    return reply.texts


def send_test_notice(transport: Transport, directory: str) -> Reply:
    """Run the grid's notify command once: its output, and whether it ended with 0. Raises UserError without one."""
    reply = _reply(_order(transport, directory, "control", "notify", timeout=_STEER_S))
    if reply.refused:
        raise UserError(reply.refused, "`notify: COMMAND` in the grid names a command")
    return reply


def _order(
    transport: Transport, directory: str, verb: str, *words: str, stdin: bytes = b"", timeout: float, older: str = ""
) -> Completed:
    """The answer of a run's own program; `older` is the script for a run without one."""
    done = transport.run(_ORDER, directory, verb, *words, stdin=stdin, timeout=timeout)
    if done.code == program.OLD_RUN and older:
        done = transport.run(older, directory, *words, timeout=timeout)
    done = program.finished(transport, done)
    program.refuse(transport, directory, done)
    if done.code == ELSEWHERE:
        refused = _reply(done).facts("fact")
        program.refuse_elsewhere(Fact.of(refused[0]) if refused else None, PurePosixPath(directory).name)
    return done


def _reply(done: Completed) -> Reply:
    """What an order printed; what was done comes before what came of it."""
    text = f"{done.stderr.decode('utf-8', 'replace')}\n{done.text}"
    return Reply(tuple(_line(line) for line in text.splitlines() if line.strip()), done.code)


def _line(line: str) -> Line:
    try:
        facts = json.loads(line) if line.startswith('{"comborun": ') else {}
    except ValueError:
        facts = {}
    return Line(harmless(str(facts.pop("comborun", line)), keep="\t"), facts)
