"""`amend SHA256`: puts an amendment into the run directory that it was made for. Standard input is as for `publish`.

If it is killed, the run has its old plan or its new one, and the same launch completes the rest. The digest is written
last and shows that the amendment is complete.
"""

from __future__ import annotations

import os

from comborun.host.record.events import Events
from comborun.host.system import files
from comborun.host.system.files import Json
from comborun.host.verb_errors import answered, unwritable
from comborun.host.verbs import reread
from comborun.host.verbs.publish import Staging, received, to_disk
from comborun.rules.events import Kind
from comborun.rules.names import AFTER, RUN, RunLayout
from comborun.rules.run_files import newest_plan

_TABLES = (RUN.server_table, RUN.wanted_secrets, RUN.notify, RUN.queue, RUN.policy, RUN.slurm_sessions)


def main(arguments: list[str]) -> int:
    return answered("amend", lambda: amend(received(arguments[0])))


def amend(order: Json) -> Json:
    """Apply the amendment, under the root's lock, and only if the run is still the one that it was made for."""
    run = order["run"]
    with Staging(order["root"]) as staging, staging.locked():
        layout = RunLayout(run)
        found = files.read_line(layout.digest), newest_plan(run)
        if found != (order["found"], order["number"]):
            return {"state": "overtaken"}
        digest = [(RUN.digest, f"{order['digest']}\n", False)]
        staging.fill([*order["files"], *digest])
        staging.to_disk()
        _put(staging.folder, run, order)
    files.tell(layout.fifo, "reread run 0")
    return {
        "state": "amended",
        "running": [name for name in order["dropped"] if files.held(layout.session_lock(name))],
    }


def _put(source: str, run: str, order: Json) -> None:
    """Move everything into its place; scripts come first, since nothing names them yet."""
    paths = sorted((path for path, *_ in order["files"]), key=_rank)
    try:
        layout = RunLayout(run)
        gone = [layout.script(AFTER)] if not order["after"] else []
        gone += [layout.done] if order["added"] else []
        for path in (path for path in paths if _rank(path) == 0):
            _move(source, run, path)
        reread.apply(run, order.get("rules", {}))
        for path in filter(os.path.exists, gone):
            os.unlink(path)
        for path in (path for path in paths if _rank(path) > 0):
            _move(source, run, path)
        counts = {"added": order["added"], "dropped": len(order["dropped"])}
        told = Events(layout)
        (told.write if order.get("followed") else told.by_person)(Kind.AMENDED, plan=newest_plan(run), **counts)
        _move(source, run, RUN.digest)
        to_disk({os.path.dirname(f"{run}/{path}") for path in (*paths, RUN.digest)})
    except OSError as error:
        raise unwritable(str(error.filename or run), error) from None


def _rank(path: str) -> int:
    """Order of moving: scripts of sessions and servers, plans, tables of the dispatcher, files for Slurm."""
    if path.startswith((f"{RUN.sessions}/", f"{RUN.servers}/")):
        return 0
    if "/" not in path:
        return 1
    return 2 + (_TABLES.index(path) if path in _TABLES else len(_TABLES))


def _move(source: str, run: str, path: str) -> None:
    os.makedirs(os.path.dirname(f"{run}/{path}"), exist_ok=True)
    os.replace(f"{source}/{path}", f"{run}/{path}")
