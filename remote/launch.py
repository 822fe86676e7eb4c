"""Put a run on a host and start it, or resume the one that is there; safe to repeat."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, cast

from comborun.attempt import parse_record
from comborun.bundle import bundle, installer
from comborun.errors import HostError, UserError
from comborun.library import library_files

if TYPE_CHECKING:
    from collections.abc import Mapping

    from comborun.plan import Plan
    from comborun.transport import Transport

State = Literal["new", "resumed", "finished", "changed"]

_RECEIVE = """
file=$(mktemp) || exit 73
trap 'rm -f -- "$file"' EXIT
cat >"$file" || exit 74
printf '%s  %s\\n' "$1" "$file" | sha256sum --check --status ||
  { echo 'what arrived is not what was sent' >&2; exit 76; }
bash --noprofile --norc "$file"
"""

_START = 'directory=$1; shift; exec bash "$directory/run_parallel.sh" "$@"'

_AWAIT = """
cd -- "$1" || exit 73
for ((i = 0; i < $2 * 20; i++)); do
  for record in sessions/*/attempt-*/begin sessions/*/attempt-*/end dispatch/done; do
    [[ -e $record ]] && exit 0
  done
  sleep 0.05
done
cat dispatch/out dispatch/journal 2>/dev/null | tail -n 20
exit 1
"""


@dataclass(frozen=True)
class Publication:
    """Where a grid's run is and whether it was there before."""

    state: State
    run: str
    directory: str


@dataclass(frozen=True)
class StartOptions:
    parallel: int | None = None
    """sessions at once; None: what the plan says, or what was set before"""
    multiplexer: Literal["tmux", "screen"] | None = None
    """None: tmux where it is, else screen"""
    secrets: bytes = field(default=b"", repr=False)
    """NAME=VALUE and a NUL for each that this machine gives (see remote/secrets.py)"""


def publish(
    transport: Transport, plan: Plan, grid_text: str, root: str, provenance: Mapping[str, Any], *, new: bool
) -> Publication:
    """Put the run directory there whole, unless a run of the same work is there; one round trip.

    `changed` means that an unfinished run of the same grid does other work; nothing was done then.
    """
    library = library_files()
    begin = (root, plan.grid, plan.digest, "new" if new else "resume")
    stream = installer(bundle(plan, grid_text, library, provenance), library["publish.sh"], begin)
    done = transport.run(_RECEIVE, hashlib.sha256(stream).hexdigest(), stdin=stream, timeout=120)
    answer = parse_record(done.text)
    if done.code or "state" not in answer:
        raise HostError(
            f"the run could not be put on {transport.host} below {root}", done.complaint or f"exit code {done.code}"
        )
    return Publication(cast("State", answer["state"]), answer["run"], answer["directory"])


def start(transport: Transport, directory: str, options: StartOptions) -> str:
    """Start or resume the dispatcher of a run; returns what was said of it, a sentence a line.

    It takes long when sessions of the user's own have to go first.
    """
    arguments: list[str] = []
    if options.parallel is not None:
        arguments += ["--parallel", str(options.parallel)]
    if options.multiplexer is not None:
        arguments += ["--multiplexer", options.multiplexer]
    if options.secrets:
        arguments += ["--secrets", "-"]
    done = transport.run(_START, directory, *arguments, stdin=options.secrets, timeout=240)
    if done.code:
        raise HostError(f"the run {directory} could not be started on {transport.host}", done.complaint)
    return done.text.strip()


def await_first(transport: Transport, directory: str, seconds: int = 20) -> None:
    """Return when the first session has its begin record; raise UserError with what the dispatcher said otherwise."""
    done = transport.run(_AWAIT, directory, str(seconds), timeout=seconds + 30)
    if done.code:
        raise UserError(
            f"no session of {directory} has begun within {seconds} seconds", done.text.strip() or done.complaint
        )
