"""The trial of `combo try`: one combo for a few episodes, in a run of its own that the next try removes."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from comborun.command import START_TIME
from comborun.errors import HostError, UserError
from comborun.grid.axes import names_of
from comborun.monitor.trial_setup import carry_out
from comborun.planner import first_episodes
from comborun.planner.calibrating import trial_plan
from comborun.remote import program
from comborun.rules.names import RunLayout
from comborun.rules.proposals import where_it_ran
from comborun.text import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from comborun.attempt import End
    from comborun.grid import Grid
    from comborun.grid.axes import Combo
    from comborun.monitor.status import RunStatus
    from comborun.monitor.trial_setup import TrialSetup
    from comborun.plan import Session

FOLDER = ".try"
_LOG_LINES = 12
_START_TIME = re.compile(r'"\$([A-Z_]+)"')


@dataclass(frozen=True)
class TryResult:
    session: Session
    """the session that ran, with the episodes of the try"""
    attempt: str
    """its folder on the host"""
    end: End
    files: tuple[tuple[str, int], ...]
    """files below its output folder, with their sizes"""
    log: tuple[str, ...]
    seed: str
    """the field with a seed under another name; empty without one"""
    grid: Path

    @property
    def seconds(self) -> float | None:
        return self.end.ended - self.end.started if self.end.started else None

    @property
    def counts(self) -> bool:
        """Whether a session like this one would be counted, and no line for `results:` would make more of it count."""
        counts = self.end.counts
        return "`results: " not in counts.why and (counts.verdicts > 0 or self.end.completeness == "complete")

    @property
    def command(self) -> str:
        """The command of the program, if it is known here."""
        first, count = self.session.own_first, self.session.count
        known = {
            "output_dir": f"{self.attempt}/out",
            "attempt": "1",
            "first_episode": str(first),
            "last_episode": str(first + count - 1),
            "end_episode": str(first + count),
            "episodes": str(count),
            "first_seed": str((self.session.seed or 0) + first),
            "episode_list": ",".join(map(str, range(first, first + count))),
        }
        values = {START_TIME[name]: shlex.quote(value) for name, value in known.items()}
        return " ".join(
            _START_TIME.sub(lambda match: values.get(match[1], match[0]), word) for word in self.session.command
        )

    def document(self) -> dict[str, Any]:
        end, counts = self.end, self.end.counts
        return {
            "policy": self.session.policy,
            "environment": self.session.environment,
            "episodes": self.session.count,
            "command": self.command,
            "folder": self.attempt,
            "seconds": self.seconds,
            "code": end.code,
            "outcome": str(end.outcome),
            "note": end.note,
            "files": [{"path": path, "bytes": size} for path, size in self.files],
            "counted": counts.records,
            "successes": counts.successes,
            "verdicts": counts.verdicts,
            "why": counts.why,
            "counts": self.counts,
            "seed": self.seed,
        }


def chosen(grid: Grid, words: Sequence[str]) -> Grid:
    """The grid with one of its combos: the first, or the one that `words` name.

    They are the name of its session, or its policy and its environment in any order, or one of these.
    """
    wanted = [word for word in words if word != "in"]
    for combo in grid.combos:
        if not wanted or wanted == [combo.session] or set(wanted) <= {combo.policy.name, combo.environment.name}:
            return grid.model_copy(update={"combos": (combo,)})
    known = [name for combo in grid.combos for name in _names(combo)]
    unknown = next((word for word in wanted if word not in known), "")
    hint = did_you_mean(unknown, dict.fromkeys(known)) or f"such as `{grid.combos[0].session}`"
    raise UserError(f"there is no combo `{' '.join(words)}` in {grid.path}", hint)


def _names(combo: Combo) -> tuple[str, str, str]:
    return combo.session, combo.environment.name, combo.policy.name


def try_one(setup: TrialSetup, episodes: int, running: Callable[[float, str], None]) -> TryResult:
    """Run the setup's only combo and look at its files; `running` gets its run time and its last line.

    A command that can't run so few episodes runs all of them.
    """
    session = setup.plan.sessions[0]
    if session.count and (session.counted or session.count <= episodes):
        session = first_episodes(session, episodes, "try")
    plan = replace(trial_plan(setup.plan, (session,), 1, "try"), retry=())

    def look(status: RunStatus) -> None:
        for one in status.busy:
            running(one.seconds or 0.0, one.last_line)

    done = carry_out(setup, plan, look)
    attempts = done.history.of(session.name)
    if not attempts or attempts[-1].end is None:
        raise HostError(f"the session of {done.directory} never began", "`combo doctor` looks for the cause")
    at = RunLayout(done.directory).attempt(session.name, attempts[-1].number).directory
    answer = program.run_packed(
        setup.transport, "logs", "left", at, str(_LOG_LINES), python=program.of_run(done.directory)
    )
    left = program.answer(setup.transport, answer)
    files, log = tuple(map(tuple, left["files"])), tuple(left["log"].split("\n"))
    end = attempts[-1].end
    end.counts.why = where_it_ran(end.counts.why, names_of(setup.grid))
    return TryResult(session, at, end, files, log, left["seed"], setup.grid.path)
