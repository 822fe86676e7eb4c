"""Where the attempts of a run live and die: on this machine, or elsewhere (`engines/slurm.py`)."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Mapping

from comborun.host.system import files, process
from comborun.host.system.files import Json
from comborun.rules.endings.evidence import Evidence, fact
from comborun.rules.facts import Fact
from comborun.rules.machines import elsewhere
from comborun.rules.names import AttemptLayout, RunLayout
from comborun.rules.vocabulary import Cause, Life


class Backend:
    """The backend of one run on this machine. A run elsewhere has a subclass, which answers every call itself."""

    elsewhere = False
    """whether attempts may run on other machines, where pids and locks of this one mean nothing"""

    def __init__(self, layout: RunLayout) -> None:
        self.layout = layout

    def refresh(self) -> object:
        """Find out anew what lives."""

    def life(self, at: AttemptLayout, record: Mapping[str, str]) -> Life:  # noqa: ARG002 - the record says it
        """RUNNING, ORPHANED or LOST, of an attempt with a claim and no end. `record`: its begin, else its claim."""
        if process.named(record, "supervisor") or elsewhere(record, process.machine()):  # that machine judges it
            return Life.RUNNING
        return Life.ORPHANED if process.named(record, "pid") else Life.LOST

    def why(self, claim: Mapping[str, str], begin: Mapping[str, str]) -> tuple[str, list[Fact]]:
        """Cause and facts of an attempt that is lost."""
        if left := elsewhere(begin or claim, process.machine()):
            return Cause.LOST.value, [fact(Evidence.TAKEN_OVER, host=left.text("host"))]
        if (begin or claim).get("boot") != process.boot_id():
            return Cause.LOST.value, [fact(Evidence.REBOOTED)]
        return Cause.LOST.value, [fact(Evidence.SUPERVISOR_DIED), *_killed(begin)]

    def freeze(self, at: AttemptLayout) -> None:
        """Keep what a process elsewhere still writes out of an attempt that has ended."""

    # A stop

    def call_off(self, names: Iterable[str] | None) -> str:
        """Cancel the starts of these sessions that wait elsewhere; with None all. Returns why it failed, or empty."""
        del names
        return ""

    def signal(self, word: str, attempts: Iterable[AttemptLayout]) -> str:
        """Send INT, TERM or KILL to each command's group, if it is still that command. Returns why it is not passed
        on, or empty.
        """
        from comborun.host.record import judging

        for at in attempts:
            begin = files.read(at.begin)
            if process.named(begin, "pid"):
                judging.note_signal(at)
                process.send_all(int(begin["pid"]), signal.Signals[f"SIG{word}"])
                process.send_all(int(begin["pid"]), signal.SIGCONT)  # a stopped process reacts to no other signal
        return ""

    def kill_supervisors(self, attempts: Iterable[AttemptLayout]) -> None:
        """End supervisors that don't react even after KILL: they are stopped or stuck."""
        for claim in (files.read(at.claim) for at in attempts):
            if process.named(claim, "supervisor"):
                process.send(int(claim["supervisor"]), signal.SIGKILL)

    def survivor(self, at: AttemptLayout) -> str:
        """What survives of an attempt, and where; empty if that is not known."""
        claim = files.read(at.claim)
        return process.described(int(claim["supervisor"])) if process.named(claim, "supervisor") else ""

    # A look

    def document(self, latest: Callable[[str], int]) -> Json:  # noqa: ARG002 - of tasks
        """For the probe: the pid of the live dispatcher, or None; 0 if something elsewhere continues the run.

        `latest`: the number of the latest attempt of a session.
        """
        record = files.read(self.layout.dispatcher)
        return {"dispatcher": int(record["pid"]) if process.named(record) else None}


def _killed(begin: Mapping[str, str]) -> list[Fact]:
    """How many processes the kernel has killed for lack of memory since the attempt began."""
    from comborun.host.system import machine

    group, _, host = begin.get("kills", "").partition(",")
    count, where = machine.kills_since(f",{host}") if host else (0, "")
    return [fact(Evidence.KILLED_FOR_MEMORY, where=where, count=count)] if count and (group or host) else []
