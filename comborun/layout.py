"""Every file name of a run directory, in one place (docs/architecture.md says what each file holds).

The bash half knows the same names; tests/unit/project/test_layout.py holds the two together.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath

AFTER = "after"
"""The session that runs the grid's `after` command; no combo can have this name, since theirs hold an underscore."""


DEFAULT_ROOT = "~/comborun"
"""the folder of the runs on a host, unless the grid says otherwise"""


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
    def videos(self) -> PurePosixPath:
        return self.directory / "videos.tsv"

    @property
    def output(self) -> PurePosixPath:
        return self.directory / "out"


@dataclass(frozen=True)
class RunLayout:
    """The files of one run directory; RUN gives names relative to it."""

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

    def amended_grid(self, number: int) -> PurePosixPath:
        """The grid of which plan-`number` was made, from the second on."""
        return self.directory / f"grid-{number}.yaml"

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

    def server_script(self, name: str) -> PurePosixPath:
        return self.directory / "servers" / name / "session.sh"

    def server_attempt(self, name: str, number: int) -> AttemptLayout:
        return AttemptLayout(self.directory / "servers" / name / f"attempt-{number}")

    @property
    def dispatch(self) -> PurePosixPath:
        return self.directory / "dispatch"

    @property
    def queue(self) -> PurePosixPath:
        return self.dispatch / "queue.tsv"

    @property
    def server_table(self) -> PurePosixPath:
        """There for a run with model servers alone."""
        return self.dispatch / "servers.tsv"

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
    def notify(self) -> PurePosixPath:
        return self.dispatch / "notify.sh"

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
    def usage(self) -> PurePosixPath:
        return self.dispatch / "usage.tsv"

    @property
    def done(self) -> PurePosixPath:
        return self.dispatch / "done"

    @property
    def engine(self) -> PurePosixPath:
        """There for a run on Slurm alone."""
        return self.dispatch / "engine"

    @property
    def slurm_kinds(self) -> PurePosixPath:
        return self.dispatch / "slurm.tsv"

    @property
    def slurm_sessions(self) -> PurePosixPath:
        return self.dispatch / "slurm.sessions"

    @property
    def slurm_options(self) -> PurePosixPath:
        return self.dispatch / "slurm.options"

    @property
    def slurm(self) -> PurePosixPath:
        return self.directory / "slurm"

    def array(self, kind: int) -> PurePosixPath:
        """The job script of the tasks of one kind of request; kinds count from 1."""
        return self.slurm / f"array-{kind}.sh"

    @property
    def settle(self) -> PurePosixPath:
        return self.slurm / "settle.sh"

    def batch(self, number: int) -> PurePosixPath:
        return self.slurm / f"batch-{number}.tsv"

    @property
    def jobs(self) -> PurePosixPath:
        return self.slurm / "jobs"

    @property
    def states(self) -> PurePosixPath:
        return self.slurm / "states"

    @property
    def results(self) -> PurePosixPath:
        return self.directory / "results"

    @property
    def canary(self) -> PurePosixPath:
        return self.directory / "canary.json"

    @property
    def report(self) -> PurePosixPath:
        return self.directory / "report"


RUN = RunLayout(PurePosixPath())
"""names relative to the run directory"""
