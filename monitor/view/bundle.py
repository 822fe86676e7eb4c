"""The page as static files, to be sent to somebody else. What is private is taken out: names of users, hosts and
machines, addresses, folders of users, commands with their arguments, logs.
"""

from __future__ import annotations

import getpass
import os
import re
import shutil
from dataclasses import replace
from html import unescape
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from comborun.monitor.observe import History
from comborun.monitor.view import pages
from comborun.monitor.view.records import (
    ReportSoFar,
    Rollout,
    alike,
    choose,
    elsewhere,
    is_inside,
    report_so_far,
    rollouts,
)
from comborun.remote.transport import LOCAL

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from comborun.monitor.watch import Look, Watched

VIDEOS_MOST = 256 << 20
"""bytes of videos, failed episodes and the newest first"""
EPISODES_MOST = 2000
_HOMES = re.compile(r"(?:/home|/Users|/export/home)/[^/\s:'\"<>&]+|(?<![\w/])/root(?=/|\b)")
_ADDRESSES = re.compile(
    r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b|\b(?:[0-9a-f]{1,4}:){3,7}[0-9a-f]{1,4}\b|\b[\w.+-]+@[\w.-]+", re.IGNORECASE
)
_TAG = re.compile(r"(<[^<>]*>)")
_SHOWN = re.compile(r'(?<=\s)(title|aria-label|alt|data-(?:run|grid|title|policy|environment))="([^"]*)"')
"""the attributes that hold words; the others are the page's own, or lead to its files"""


class Redaction:
    """Takes out of a page what nobody else should learn."""

    def __init__(self, directories: Sequence[str], names: Sequence[str]) -> None:
        self._directories = directories
        words = sorted({name for name in names if len(name) > 1}, key=len, reverse=True)
        self._names = re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, words))})(?![\w-])") if words else None

    def __call__(self, html: str) -> str:
        """Only words are changed: a user may be called like a part of the page."""
        parts = _TAG.split(html)
        parts[::2] = map(self._escaped, parts[::2])
        parts[1::2] = (_SHOWN.sub(lambda at: f'{at[1]}="{self._escaped(at[2])}"', tag) for tag in parts[1::2])
        return "".join(parts)

    def _escaped(self, words: str) -> str:
        return escape(self.of(unescape(words))) if words.strip() else words

    def of(self, words: str) -> str:
        for directory in self._directories:
            words = words.replace(directory, "RUN")
        home = str(Path.home())
        found = _HOMES.sub("~", words.replace(home, "~") if home.strip("/") else words)
        found = _ADDRESSES.sub("…", found)
        return self._names.sub("…", found) if self._names else found


def write_bundle(source: Watched, folder: Path) -> tuple[int, int]:
    """Write the page; returns how many videos were copied and left out. Raises UserError, HostError, OSError."""
    look = source.look(1, source.fold(History()))
    view, records = look.view, source.records()
    newest = elsewhere(rollouts, records, look.status.now or 0.0)
    rows, _ = choose(newest, most=EPISODES_MOST)
    folder.mkdir(parents=True, exist_ok=True)
    shown, left = copy_videos(rows, records, folder)
    with TemporaryDirectory() as scratch:
        report = elsewhere(report_so_far, records, Path(scratch)) if rows else ReportSoFar()
    look = look._replace(status=replace(look.status, host=""))
    directories = [one.view.directory for one in source.by_host().values()]
    site, private = pages.Site(bundled=True, files=shown), Redaction(directories, _names(look, source))

    def write(name: str, screen: str, **values: Any) -> None:
        main = Markup(pages.render(f"{screen}.html.j2", site, look, screen, **values))  # noqa: S704 - templates escape
        text = pages.render("page.html.j2", site, look, screen, said={}, tag="", main=main)
        (folder / name).write_text(private(text), "utf-8", errors="replace")

    for static in ("view.css", "view.js", "icon.svg"):
        shutil.copyfile(pages.HERE / "static" / static, folder / static)
    write("index.html", "run", **pages.of_run(look), news=())
    write("host.html", "host", **pages.of_hosts(look, {}, 0.0))
    write("report.html", "report", report=report, busy=False, complaint="")
    chosen: dict[str, Any] = {"count": len(newest), "complaint": "", "made": 1, "busy": False}
    wanted = dict.fromkeys(("show", "policy", "environment"), "")
    age = {row.key: number for number, row in enumerate(newest)}
    groups = {(one.environment, one.start): alike(rows, one, view.plan.policies) for one in rows}
    write(
        "rollouts.html", "rollouts", rows=rows, age=age, wanted=wanted, one=None, beside=(), lacking=(),
        neighbours=("", ""), here=lambda path: path in shown, groups=[*groups.values()], **chosen,
    )  # fmt: skip
    for one in look.status.every:
        values = pages.of_cell(look, one.name)
        assert values is not None
        write(f"cell-{one.name}.html", "cell", **values)
    return len(shown), left


def _names(look: Look, source: Watched) -> list[str]:
    """Users and machines that are known by name."""
    nodes = [attempt.begin.host for seen in look.history.attempts.values() for attempt in seen if attempt.begin]
    here = os.uname().nodename
    known = [getpass.getuser(), Path.home().name, here, here.partition(".")[0], *nodes]
    others = look.status.part.texts("hosts") if look.status.part else ()
    for host in (*source.by_host(), *others):
        user, _, machine = host.rpartition("@")
        known += [user, machine.partition(":")[0]]
    return [name for name in known if name not in ("", LOCAL, "root")]


def copy_videos(rows: Sequence[Rollout], records: Path, folder: Path) -> tuple[Mapping[str, str], int]:
    """The videos that are in the bundle, by their paths in the run, and how many are not. Programs named them: here
    they are named for their episodes.
    """
    shown, size = dict[str, str](), 0
    wanted = [one for one in rows if one.playable]
    for one in wanted:
        if one.video in shown:
            continue
        found, inside = (records / one.video).resolve(), records.resolve()
        fits = found.is_file() and found.is_relative_to(inside) and is_inside(str(found.relative_to(inside)))
        if fits and size + found.stat().st_size <= VIDEOS_MOST:
            size += found.stat().st_size
            suffix = PurePosixPath(one.video).suffix.lower()
            shown[one.video] = f"files/{len(shown) + 1:04}-{one.session}-{one.episode}{suffix}"
            target = folder / shown[one.video]
            target.parent.mkdir(exist_ok=True)
            shutil.copyfile(found, target)
    return shown, len({one.video for one in wanted}) - len(shown)
