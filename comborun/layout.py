"""Every file name of a run directory, in one place (docs/architecture.md says what each file holds).

The bash half knows the same names; tests/unit/test_layout.py holds the two together.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath

AFTER = "after"
"""The session that runs the grid's `after` command; no combo can have this name, since theirs hold an underscore."""


@dataclass(frozen=True)
class AttemptLayout:
    directory: PurePosixPath

    @property
    def claim(self) -> PurePosixPath:
        return self.directory / "claim"

    @property
    def grant(self) -> PurePosixPath:
        return self.directory / "grant"

    @property
    def begin(self) -> PurePosixPath:
        return self.directory / "begin"

    @property
    def end(self) -> PurePosixPath:
        return self.directory / "end"

    @property
    def log(self) -> PurePosixPath:
        return self.directory / "log"

    @property
    def stop(self) -> PurePosixPath:
        return self.directory / "stop"

    @property
    def output(self) -> PurePosixPath:
        return self.directory / "out"


@dataclass(frozen=True)
class RunLayout:
    """The files of one run directory; `RunLayout(PurePosixPath())` gives names relative to it."""

    directory: PurePosixPath

    @property
    def id(self) -> PurePosixPath:
        return self.directory / "id"

    @property
    def digest(self) -> PurePosixPath:
        return self.directory / "digest"

    @property
    def manifest(self) -> PurePosixPath:
        return self.directory / "run.json"

    def plan(self, number: int) -> PurePosixPath:
        return self.directory / f"plan-{number}.json"

    @property
    def grid(self) -> PurePosixPath:
        return self.directory / "grid.yaml"

    @property
    def front(self) -> PurePosixPath:
        return self.directory / "run_parallel.sh"

    @property
    def library(self) -> PurePosixPath:
        return self.directory / "lib"

    @property
    def sessions(self) -> PurePosixPath:
        return self.directory / "sessions"

    def session(self, name: str) -> PurePosixPath:
        return self.sessions / name

    def script(self, name: str) -> PurePosixPath:
        return self.session(name) / "session.sh"

    def lock(self, name: str) -> PurePosixPath:
        return self.session(name) / "lock"

    def attempt(self, name: str, number: int) -> AttemptLayout:
        return AttemptLayout(self.session(name) / f"attempt-{number}")

    @property
    def dispatch(self) -> PurePosixPath:
        return self.directory / "dispatch"

    @property
    def queue(self) -> PurePosixPath:
        return self.dispatch / "queue.tsv"

    @property
    def policy(self) -> PurePosixPath:
        return self.dispatch / "policy.tsv"

    @property
    def replaces(self) -> PurePosixPath:
        return self.dispatch / "replaces"

    @property
    def wanted_secrets(self) -> PurePosixPath:
        return self.dispatch / "secrets.tsv"

    @property
    def secrets(self) -> PurePosixPath:
        return self.dispatch / "secrets"

    @property
    def slots(self) -> PurePosixPath:
        return self.dispatch / "slots"

    @property
    def journal(self) -> PurePosixPath:
        return self.dispatch / "journal"

    @property
    def done(self) -> PurePosixPath:
        return self.dispatch / "done"

    @property
    def results(self) -> PurePosixPath:
        return self.directory / "results"

    @property
    def report(self) -> PurePosixPath:
        return self.directory / "report"
