"""`take-over RUN`: makes this machine the owner of a run that another one began, because that was renamed or is gone.

Attempts that have no end there are lost, and start again with the next dispatcher. A dispatcher that lives there after
all leaves; sessions that live there go on, and their later results count like those of any earlier attempt.

0: the run is this machine's. 66: no run directory. 73: can't write. 75: the other dispatcher does not leave.
"""

from __future__ import annotations

from comborun.host.record import recounts, run_owner
from comborun.host.record.events import Events
from comborun.host.record.run_directory import RunDirectory
from comborun.host.system import files, process
from comborun.host.verb_errors import BUSY, Refusal, answer, must_write, run_directory, say
from comborun.rules.host import Denial
from comborun.rules.machines import elsewhere
from comborun.rules.names import SERVERS, bare

_LEAVING_S = 15.0
"""seconds for the other dispatcher to notice, if the file system tells us of its lock"""


def main(arguments: list[str]) -> int:
    return answer("take-over", _take_over, arguments)


def _take_over(arguments: list[str]) -> int:
    run = RunDirectory(run_directory(arguments))
    before = run_owner.elsewhere(run.layout)
    if not before:
        say(f"{run.id}: it runs on no other machine")
        return 0
    _own(run, before.text("host"))
    lock = files.lock(run.layout.lock, _LEAVING_S)
    if lock < 0:
        raise Refusal(BUSY, Denial.DISPATCHER_STAYS, host=before.text("host"))
    Events(run.layout).order("take_over", host=before.text("host"))
    say(f"{run.id}: taken over from {before.text('host')}")
    _end_attempts(run)
    _own(run)
    return 0


def _own(run: RunDirectory, former: str = "") -> None:
    fields = {**process.machine(), **({run_owner.FROM: former} if former else {})}
    must_write(files.write(run.layout.machine, fields.items()), run.layout.dispatch)


def _end_attempts(run: RunDirectory) -> None:
    """Record the attempts of other machines as lost; a session gets another one. Nothing waits long for their files."""
    reading = recounts.Deadline(recounts.LOST_S)
    for name, number, record in list(run_owner.open_attempts(run.layout)):
        if not elsewhere(record, process.machine()):
            continue
        if not name.startswith(SERVERS):
            run.ask(name, number, lost=True)
        must_write(run.finalize_lost(name, number, reading.left), run.at(name, number).directory)
        say(f"{bare(name)}: lost", session=bare(name))
