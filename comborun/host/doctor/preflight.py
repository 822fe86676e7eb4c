"""Finds what a grid needs and this host lacks: folders, programs, files, conda environments, disk space.

It runs nothing of the user's, so it skips what only `setup` can show.
"""

from __future__ import annotations

import difflib
import glob
import hashlib
import os
import re
import shutil
import time
from collections.abc import Iterator

from comborun.host.system import commands, files, machine
from comborun.host.system.files import Json
from comborun.host.verbs.publish import runs_below
from comborun.host.verbs.runs import size
from comborun.rules.facts import Fact
from comborun.rules.host import Lack
from comborun.rules.names import RunLayout

_CONDA = ("~/miniconda3", "~/anaconda3", "~/miniforge3", "~/mambaforge", "~/micromamba", "/opt/conda")
_LEAST_KIB = 1 << 10
"""KiB for a few logs and records; with less nothing can start"""
_NAMED_MOST = 8
_ASKED = {"docker": ("docker", "info"), "podman": ("podman", "info"), "apptainer": ("apptainer", "version")}
"""what shows whether a runtime of containers works"""
_COUNT_S = 1.0
"""for the files of one earlier run"""
_FOLDERS_MOST = 4
_END = 1 << 20
"""bytes at the beginning and at the end of a checkpoint that are read"""


def lacks(wanted: Json) -> list[Fact]:
    found = [lack for combo in wanted["programs"] for lack in _combo(combo, wanted["windows"])]
    once = [lack for place, lack in enumerate(found) if lack not in found[:place]]
    xvfb = wanted["windows"] and wanted.get("xvfb") and not shutil.which("Xvfb")
    return [
        *_relative(wanted),
        *once,
        *([Fact(Lack.XVFB)] if xvfb else []),
        *_disk(files.home(wanted["root"]), wanted),
    ]


def folders(wanted: Json) -> list[str]:
    """The first few folders in which commands run, each once."""
    return list(filter(os.path.isdir, workdirs(wanted)))[:_FOLDERS_MOST]


def workdirs(wanted: Json) -> list[str]:
    """The folders in which commands run, as far as known, each once."""
    found = dict.fromkeys(files.home(combo["folder"]) for combo in wanted.get("programs", ()))
    return list(filter(None, found))


def checkpoints(wanted: Json) -> dict[str, Json]:
    """Policy -> facts of its checkpoint, if it exists.

    Only both ends are read: they distinguish checkpoints, and no launch waits for a digest of many gigabytes.
    """
    found = ((policy, _file(path)) for policy, path in wanted.get("checkpoints", {}).items())
    return {policy: file for policy, file in found if file}


def _file(path: str) -> Json:
    place = files.home(path)
    try:
        with open(place, "rb") as stream:
            about = os.fstat(stream.fileno())
            ends = stream.read(_END)
            stream.seek(max(len(ends), about.st_size - _END))
            ends += stream.read(_END)
    except OSError:  # also for a folder
        return {}
    changed = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(about.st_mtime))
    return {
        "path": path,
        "bytes": about.st_size,
        "changed": changed,
        "sha256_of_ends": hashlib.sha256(ends).hexdigest(),
    }


def _combo(combo: Json, windows: bool) -> Iterator[Fact]:
    """`windows`: whether sessions run on this machine, and not on a node."""
    folder = files.home(combo["folder"])
    if folder and not os.path.isdir(folder):
        yield Fact(Lack.FOLDER, folder=combo["folder"], near=_close(folder))
        folder = ""
    for path in combo["files"]:
        place = os.path.join(folder, files.home(path))
        if os.path.isabs(place) and not os.path.exists(place):
            below = "" if os.path.isabs(files.home(path)) else combo["folder"]
            yield Fact(Lack.FILE, path=path, below=below, near=_close(place))
    given = (os.path.join(folder, files.home(name)) for name in combo["conda"] if "/" in name)
    environments = [*filter(os.path.isdir, given), *_conda_environments(combo["setup"])]
    for name in combo["conda"]:
        if not any(os.path.basename(one) == name or one == files.home(name) for one in environments):
            names = sorted({os.path.basename(one) for one in environments})
            near = difflib.get_close_matches(name, names, 1)
            yield Fact(Lack.ENVIRONMENT, name=name, near="".join(near), known=names[:_NAMED_MOST])
    if program := _program(combo, folder, environments, windows):
        yield program
    if windows and combo.get("runtime"):
        yield from _runtime(combo["runtime"], combo["user_given"])


def _runtime(runtime: str, user_given: bool) -> Iterator[Fact]:
    """Whether containers start here. `user_given`: the grid says who their user is."""
    if not shutil.which(runtime):
        yield Fact(Lack.RUNTIME, runtime=runtime)
        return
    code, said = commands.run(commands.PATIENCE_S, *_ASKED[runtime], errors=True)
    if code:
        lines = said.splitlines() or [f"`{' '.join(_ASKED[runtime])}` does not answer"]
        yield Fact(Lack.RUNTIME_FAILS, runtime=runtime, said=lines[-1])
    elif runtime == "docker" and re.search(r"(?m)^\s*rootless$", said) and not user_given:
        yield Fact(Lack.ROOTLESS, runtime=runtime)


def _relative(wanted: Json) -> Iterator[Fact]:
    """What is relative to no folder of this host."""
    named: list[str] = []
    for combo in wanted["programs"]:
        if combo["placeless"]:
            named += [*([combo["program"]] * ("/" in combo["program"])), *combo["files"]]
    paths = [path for path in dict.fromkeys(named) if not os.path.isabs(files.home(path))]
    if paths:
        yield Fact(Lack.RELATIVE, paths=paths, **wanted["bring"])


def _close(path: str) -> str:
    """A file beside it with a similar name; empty without one."""
    return "".join(difflib.get_close_matches(os.path.basename(path), files.entries(os.path.dirname(path)), 1))


def _conda_environments(setup: str) -> Iterator[str]:
    """The folders of all environments that can be found."""
    sourced = re.findall(r"(\S+)/etc/profile\.d/(?:conda|mamba)\.sh", setup)
    for root in dict.fromkeys(map(files.home, (*sourced, *_CONDA, os.environ.get("MAMBA_ROOT_PREFIX", "")))):
        if root and os.path.isdir(f"{root}/envs"):
            yield from glob.glob(f"{glob.escape(root)}/envs/*")
            yield f"{root}/envs/base"  # the root itself
    yield from filter(os.path.isdir, files.read_text(files.home("~/.conda/environments.txt")).splitlines())


def _program(combo: Json, folder: str, environments: list[str], windows: bool) -> Fact | None:
    program, setup = combo["program"], combo["setup"]
    if "/" in program:
        place = os.path.join(folder, files.home(program))
        if not os.path.isabs(place) or os.access(place, os.X_OK) or program in combo["files"]:
            return None
        if os.path.exists(place):
            return Fact(Lack.NOT_EXECUTABLE, program=program)
        return Fact(Lack.PROGRAM, program=program, near=_close(place))
    if not program or not windows or not combo["harmless"]:
        return None
    activated = (os.path.join(folder, files.home(one)) for one in re.findall(r"(\S+/activate)\b", setup))
    places = [os.path.dirname(one) for one in activated]
    places += [
        f"{one}/bin" for one in environments if {os.path.basename(one), one} & set(map(files.home, combo["conda"]))
    ]
    if shutil.which(program, path=os.pathsep.join([*places, os.environ.get("PATH", "")])):
        return None
    there = {name for place in os.get_exec_path() for name in files.entries(place)}
    return Fact(Lack.ON_PATH, program=program, near="".join(difflib.get_close_matches(program, there, 1)))


def _disk(root: str, wanted: Json) -> Iterator[Fact]:
    """Whether there is room for anything at all, and for what the last run of this grid that has finished wrote."""
    earlier = runs_below(root, wanted["name"])
    finished = [run for run in earlier if os.path.exists(RunLayout(run).done)][-1:]
    while not os.path.isdir(root) and root != "/":
        root = os.path.dirname(root)
    _, free = machine.disk_kib(root)
    if free is not None and free < _LEAST_KIB:
        yield Fact(Lack.DISK_FULL, root=root, free_kib=free)
    elif free is not None and finished:
        last = size(finished[0], _COUNT_S) >> 10
        goes_on = 0 if wanted["new"] else size(earlier[-1], _COUNT_S) >> 10
        if last - goes_on > free:
            yield Fact(Lack.DISK_SHORT, root=root, free_mib=free >> 10, wrote_mib=last >> 10)
