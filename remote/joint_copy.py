"""One folder with the records of a run on several hosts: a run directory of links into the copies of its parts.

Each session's attempts are those of the host where it runs. Of a host that was given up, the episodes count that it had
on record by then: its attempts come first, and `boxes/kept.json` says which of their episodes count.
`boxes/clocks.json` names the attempts of hosts whose clock is wrong.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple

from comborun.errors import HostError, UserError
from comborun.model.plan import Plan
from comborun.model.work import deal_in, process_of
from comborun.remote.fetch import mirror_directory
from comborun.remote.mirror import Mirror, Skipped
from comborun.remote.runs import plan_of
from comborun.rules.deal import counting, newest_known
from comborun.rules.names import CLOCKS, KEPT_EPISODES, RUN, RunLayout
from comborun.rules.run_files import attempts_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from comborun.rules.deal import Deal, OnRecord

_SEVERAL = "several-hosts"
_CLOCKS_S = 5.0
"""a clock that differs by less from that of this machine is taken as right"""


class Part(NamedTuple):
    host: str
    run: str
    copy: tuple[Path, tuple[Skipped, ...]] | None
    """its records on this machine, and what could not be copied"""


def newest_deal(parts: Sequence[Part]) -> Deal | None:
    """The deal with the highest number among those of the parts, and its moves, as their copies have them."""
    copies = [part.copy[0] for part in parts if part.copy]
    deals = (deal_in(_text(copy / RUN.deal), map(_text, (copy / RUN.moves).glob("*"))) for copy in copies)
    found = [deal for deal in deals if deal]
    return newest_known(found) if found else None


def _manifest(texts: Mapping[str, str]) -> str:
    """That of the first host, with what each host is where they differ, such as GPUs and drivers."""
    first = next(iter(texts.values()))
    try:
        whole, hosts = json.loads(first), {host: json.loads(text)["provenance"]["host"] for host, text in texts.items()}
        for key in whole["provenance"]["host"]:
            told = {host: one.get(key) for host, one in hosts.items()}
            if any(value != whole["provenance"]["host"][key] for value in told.values()):
                whole["provenance"]["host"][key] = told
    except (ValueError, KeyError, TypeError, AttributeError):
        return first
    return json.dumps(whole)


def joint_folder(run: str) -> Path:
    return mirror_directory(_SEVERAL, run)


def joint_copy(run: str, parts: Sequence[Part]) -> tuple[Path, tuple[Skipped, ...]]:
    """Put the parts' records together. Returns the folder, and what of them could not be copied."""
    deal = newest_deal(parts)
    if not deal:
        raise HostError(f"there are no records of {run} on this machine, and no host answers")
    folder = joint_folder(run)
    try:
        skipped = _Joint(folder, deal, {part.host: part for part in parts if part.copy}).make()
    except OSError as error:
        raise UserError(f"{folder} can't be written: {error.strerror}", "make room on this machine's disk") from None
    return folder, skipped


class _Joint:
    def __init__(self, folder: Path, deal: Deal, parts: dict[str, Part]) -> None:
        self._folder, self._deal, self._parts = folder, deal, parts
        self._kept: dict[str, dict[str, dict[int, list[list[int]]]]] = {host: {} for host in deal.lost}
        self._clocks: dict[str, dict[str, Any]] = {}
        self._skipped: list[Skipped] = []
        self._links: list[Path] = []

    def make(self) -> tuple[Skipped, ...]:
        (self._folder / RUN.sessions).mkdir(parents=True, exist_ok=True)
        for name in ("boxes", "dispatch"):
            (self._folder / name).mkdir(exist_ok=True)
        copies = {host: part.copy[0] for host, part in self._parts.items() if part.copy}
        first = next(copies[host] for host in self._deal.boxes if host in copies)
        for name in (RUN.id, RUN.digest, RUN.grid, RUN.queue):
            self._write(name, _text(first / name))
        self._write(
            RUN.manifest,
            _manifest({host: _text(copies[host] / RUN.manifest) for host in self._deal.boxes if host in copies}),
        )
        self._canaries(copies)
        for name in (RUN.environments, RUN.events):
            self._write(name, "".join(_text(copy / name) for copy in copies.values()))
        plan = self._plan(copies)
        self._write(RUN.plan(1), plan.to_json())
        for name, process in self._names(plan):
            self._link(name, process, copies)
        for path in {*(self._folder / RUN.sessions).glob("*/*")} - {*self._links}:
            if not path.name.startswith("."):  # a link that another command is making
                path.unlink(missing_ok=True)
        self._write(KEPT_EPISODES, json.dumps(self._kept))
        self._write(CLOCKS, json.dumps(self._clocks))
        left = [host for host in self._deal.left if not (host in copies and (copies[host] / RUN.done).is_file())]
        done = self._folder / RUN.done
        if left:
            done.unlink(missing_ok=True)
        else:
            self._write(RUN.done, _text(copies[self._deal.arbiter] / RUN.done))
        return tuple(self._skipped)

    def _canaries(self, copies: dict[str, Path]) -> None:
        """What a recheck has found on each host, as one."""
        found = [json.loads(text) for copy in copies.values() if (text := _text(copy / RUN.canary))]
        if found:
            runs, combos = ", ".join(one["run"] for one in found), [combo for one in found for combo in one["combos"]]
            self._write(RUN.canary, json.dumps({**found[0], "run": runs, "combos": combos}))

    def _plan(self, copies: dict[str, Path]) -> Plan:
        """The plan of the first host, with sessions that `resume` has added on others."""
        found: Plan | None = None
        for host in self._deal.boxes:
            if host in copies:
                with suppress(OSError, ValueError):
                    own = plan_of(copies[host])[0].whole
                    known = {one.name for one in found.sessions} if found else set()
                    more = (one for one in own.sessions if one.name not in known)
                    found = replace(found, sessions=(*found.sessions, *more)) if found else own
                    for one in own.sessions:  # what no deal names runs on the host whose plan has it
                        self._deal.of.setdefault(process_of(one), host)
        if not found:
            raise HostError(f"no copy of the plan of {self._folder.name} can be read")
        return found

    @staticmethod
    def _names(plan: Plan) -> Iterator[tuple[str, str]]:
        yield from ((one.name, process_of(one)) for one in plan.sessions)
        yield from ((name, name) for name in dict.fromkeys(one.together for one in plan.sessions) if name)

    def _link(self, name: str, process: str, copies: dict[str, Path]) -> None:
        target, before = self._folder / RUN.session(name), 0
        for host, ranges in counting(self._deal, name, process):
            if host not in copies:
                continue
            layout, ahead = RunLayout(str(copies[host])), Mirror(copies[host]).ahead
            numbers = attempts_of(layout, name)
            for number in numbers:
                target.mkdir(exist_ok=True)
                source = Path(layout.attempt(name, number).directory)
                link = target / PurePosixPath(RUN.attempt(name, before + number).directory).name
                self._links.append(link)
                if not (link.is_symlink() and link.readlink() == source):  # somebody may read the folder
                    draft = link.with_name(f".{link.name}.{os.getpid()}")
                    draft.symlink_to(source)
                    draft.replace(link)
                if ranges is not None:
                    self._kept[host].setdefault(name, {})[before + number] = ranges
                if abs(ahead) > _CLOCKS_S:
                    wrong = self._clocks.setdefault(host, {"ahead": ahead, "attempts": {}})
                    wrong["attempts"].setdefault(name, []).append(before + number)
                former, now = (PurePosixPath(RUN.attempt(name, at).directory) for at in (number, before + number))
                lacking = copy[1] if (copy := self._parts[host].copy) else ()
                self._skipped += [
                    Skipped(now / path.relative_to(former), why) for path, why in lacking if path.is_relative_to(former)
                ]
            before += max([*numbers, *attempts_of(layout, process)], default=0)

    def _write(self, name: str, text: str) -> None:
        draft = self._folder / f"{name}.{os.getpid()}"
        draft.write_text(text, "utf-8", "surrogateescape")
        draft.replace(self._folder / name)


def on_record(records: Sequence[tuple[str, int]], sessions: Sequence[str]) -> OnRecord:
    """The ranges of episodes on record, for each session; `records` are session and episode."""
    from comborun.model.work import spans

    found: dict[str, list[int]] = {name: [] for name in sessions}
    for session, episode in records:
        if session in found:
            found[session].append(episode)
    return {name: [[span.start, span.stop] for span in spans(indices)] for name, indices in found.items()}


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "surrogateescape")
    except OSError:
        return ""
