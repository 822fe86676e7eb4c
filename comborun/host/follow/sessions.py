"""The sessions of checkpoints in the plan, queue and scripts of a run that follows a training."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Iterator

from comborun.host.system import files
from comborun.host.system.files import Json
from comborun.host.verbs.amend import amend
from comborun.rules.following import POLICY, Decision, Record, filled, plan_text, queue_text, with_checkpoints
from comborun.rules.names import AFTER, RUN, RunLayout
from comborun.rules.run_files import attempts_of, newest_plan

_MOST = 999_999_999


class Sessions:
    def __init__(self, layout: RunLayout) -> None:
        self._layout = layout

    def plan(self) -> Json:
        plan = json.loads(files.read_text(self._layout.plan(newest_plan(self._layout.directory)), _MOST))
        return dict(plan)

    def _of(self, policies: Collection[str]) -> Iterator[Json]:
        """The sessions of these checkpoints, without dropped ones."""
        plan = self.plan() if policies else {"sessions": []}
        first = plan["sessions"][0] if policies else {}
        sessions = ({**first, **one} for one in plan["sessions"])
        return (one for one in sessions if one["policy"] in policies and one.get("flag") != "dropped")

    def all_begun(self, policies: Collection[str]) -> bool:
        return all(attempts_of(self._layout, one["name"]) for one in self._of(policies))

    def attempts_ended(self, policy: str) -> int:
        """The number of attempts of a checkpoint's sessions; 0 unless the last of each has ended."""
        total = 0
        for session in self._of((policy,)):
            numbers = attempts_of(self._layout, session["name"])
            if not numbers or not files.read(self._layout.attempt(session["name"], numbers[-1]).end):
                return 0
            total += numbers[-1]
        return total

    def put(self, record: Record) -> None:
        """Bring plan, queue and scripts to what the record says, as an amendment does; nothing where they are so."""
        while True:
            layout, number = self._layout, newest_plan(self._layout.directory)
            taken = record.having(Decision.TAKEN, Decision.VERIFIED, Decision.CHANGED)
            changed = {one["policy"] for one in record.having(Decision.CHANGED)}
            before, rows = self.plan(), files.read_text(layout.queue, _MOST)
            after = with_checkpoints(before, taken, changed)
            policies = {one["name"]: one["policy"] for one in after["sessions"]}
            queue = queue_text(rows, taken, changed, policies)
            same = plan_text(after) == plan_text(with_checkpoints(before, (), ()))
            if same and queue == queue_text(rows, (), (), {}):
                return
            had = {one.get("policy") for one in before["sessions"]}
            fresh = [one for one in taken if one["policy"] not in had]
            texts = [*self._scripts(fresh), (RUN.plan(number + 1), plan_text(after), False), (RUN.queue, queue, False)]
            digest = files.read_line(layout.digest)
            order = {"root": os.path.dirname(layout.directory), "run": layout.directory, "number": number, "rules": {}}
            order.update(found=digest, digest=digest, files=texts, added=len(fresh), dropped=sorted(changed))
            order.update(after=os.path.exists(layout.script(AFTER)), followed=True)
            if amend(order)["state"] == "amended":
                return

    def _scripts(self, fresh: Iterable[Json]) -> Iterator[tuple[str, str, bool]]:
        template = [name for name in files.entries(self._layout.sessions) if POLICY in name]
        for one in fresh:
            for name in template:
                session = filled(name, one["policy"], "")
                for path in (self._layout.script, self._layout.session_json):
                    text = filled(files.read_text(path(name), _MOST), one["policy"], one["link"])
                    yield os.path.relpath(path(session), self._layout.directory), text, False
