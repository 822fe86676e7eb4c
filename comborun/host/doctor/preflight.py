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

from comborun.host.system import files, machine
from comborun.host.verbs.publish import runs_below
from comborun.host.verbs.runs import size
from comborun.rules.names import RunLayout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator

_CONDA = ("~/miniconda3", "~/anaconda3", "~/miniforge3", "~/mambaforge", "~/micromamba", "/opt/conda")
_LEAST_KIB = 1 << 10
"""KiB for a few logs and records; with less nothing can start"""
_ROOM = "`combo clean` removes old runs, `root:` names another disk"
_COUNT_S = 1.0
"""for the files of one earlier run"""
_FOLDERS_MOST = 4
_END = 1 << 20
"""bytes at the beginning and at the end of a checkpoint that are read"""


def lacks(wanted: dict[str, Any]) -> list[str]:
    found = dict.fromkeys(line for combo in wanted["programs"] for line in _combo(combo, wanted["windows"]))
    return [*_relative(wanted), *found, *_disk(files.home(wanted["root"]), wanted)]


def folders(wanted: dict[str, Any]) -> list[str]:
    """The first few folders in which commands run, each once."""
    return list(filter(os.path.isdir, workdirs(wanted)))[:_FOLDERS_MOST]


def workdirs(wanted: dict[str, Any]) -> list[str]:
    """The folders in which commands run, as far as known, each once."""
    found = dict.fromkeys(files.home(combo["folder"]) for combo in wanted.get("programs", ()))
    return list(filter(None, found))


def checkpoints(wanted: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Policy -> facts of its checkpoint, if it exists.

    Only both ends are read: they distinguish checkpoints, and no launch waits for a digest of many gigabytes.
    """
    found = ((policy, _file(path)) for policy, path in wanted.get("checkpoints", {}).items())
    return {policy: file for policy, file in found if file}


def _file(path: str) -> dict[str, Any]:
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


def _combo(combo: dict[str, Any], windows: bool) -> Iterator[str]:
    """`windows`: whether sessions run on this machine, and not on a node."""
    folder = files.home(combo["folder"])
    if folder and not os.path.isdir(folder):
        make = f"; make it there, or `sync: [{{from: ., to: {combo['folder']}}}]` brings the grid file's"
        yield f"workdir: there is no folder {combo['folder']}{_close(folder) or make}"
        folder = ""
    for path in combo["files"]:
        place = os.path.join(folder, files.home(path))
        if os.path.isabs(place) and not os.path.exists(place):
            copy = f" in {combo['folder']}; copy it there"
            if os.path.isabs(files.home(path)):
                copy = f"; copy it there, or `sync: [{{from: {os.path.basename(path)}, to: {path}}}]` brings it"
            yield f"file: there is no {path}{_close(place) or copy}"
    given = (os.path.join(folder, files.home(name)) for name in combo["conda"] if "/" in name)
    environments = [*filter(os.path.isdir, given), *_conda_environments(combo["setup"])]
    for name in combo["conda"]:
        if not any(os.path.basename(one) == name or one == files.home(name) for one in environments):
            yield _no_environment(name, environments)
    if program := _program(combo, folder, environments, windows):
        yield program


def _relative(wanted: dict[str, Any]) -> Iterator[str]:
    """What is relative to no folder of this host."""
    named: list[str] = []
    for combo in wanted["programs"]:
        if combo["placeless"]:
            named += [*([combo["program"]] * ("/" in combo["program"])), *combo["files"]]
    paths = [path for path in dict.fromkeys(named) if not os.path.isabs(files.home(path))]
    if paths:
        are = f"{', '.join(paths)} {'is' if len(paths) == 1 else 'are'} relative, and no `workdir` is set"
        yield f"file: {are}: {wanted['bring']}"


def _no_environment(name: str, environments: list[str]) -> str:
    names = sorted({os.path.basename(one) for one in environments})
    near = difflib.get_close_matches(name, names, 1)
    other = (
        f"there are {', '.join(names[:8])}"
        if names
        else "no conda was found: `source FOLDER/etc/profile.d/conda.sh` in `setup` says where it is"
    )
    return f"conda: there is no environment {name}; {f'did you mean {near[0]}?' if near else other}"


def _close(path: str) -> str:
    """A file beside it with a similar name."""
    near = difflib.get_close_matches(os.path.basename(path), files.entries(os.path.dirname(path)), 1)
    return f"; did you mean {near[0]}?" if near else ""


def _conda_environments(setup: str) -> Iterator[str]:
    """The folders of all environments that can be found."""
    sourced = re.findall(r"(\S+)/etc/profile\.d/(?:conda|mamba)\.sh", setup)
    for root in dict.fromkeys(map(files.home, (*sourced, *_CONDA, os.environ.get("MAMBA_ROOT_PREFIX", "")))):
        if root and os.path.isdir(f"{root}/envs"):
            yield from glob.glob(f"{glob.escape(root)}/envs/*")
            yield f"{root}/envs/base"  # the root itself
    yield from filter(os.path.isdir, files.read_text(files.home("~/.conda/environments.txt")).splitlines())


def _program(combo: dict[str, Any], folder: str, environments: list[str], windows: bool) -> str:
    program, setup = combo["program"], combo["setup"]
    if "/" in program:
        place = os.path.join(folder, files.home(program))
        if not os.path.isabs(place) or os.access(place, os.X_OK) or program in combo["files"]:
            return ""
        return f"program: {program} " + (
            f"is not executable; chmod +x {program}" if os.path.exists(place) else f"is not there{_close(place)}"
        )
    if not program or not windows or not combo["harmless"]:
        return ""
    activated = (os.path.join(folder, files.home(one)) for one in re.findall(r"(\S+/activate)\b", setup))
    places = [os.path.dirname(one) for one in activated]
    places += [
        f"{one}/bin" for one in environments if {os.path.basename(one), one} & set(map(files.home, combo["conda"]))
    ]
    if shutil.which(program, path=os.pathsep.join([*places, os.environ.get("PATH", "")])):
        return ""
    near = difflib.get_close_matches(
        program, {name for place in os.get_exec_path() for name in files.entries(place)}, 1
    )
    meant = f"did you mean {near[0]}?" if near else "write its whole path, or add its folder to PATH in `setup`"
    return f"program: {program} is not on the PATH; {meant}"


def _disk(root: str, wanted: dict[str, Any]) -> Iterator[str]:
    """Whether there is room for anything at all, and for what the last run of this grid that has finished wrote."""
    earlier = runs_below(root, wanted["name"])
    finished = [run for run in earlier if os.path.exists(RunLayout(run).done)][-1:]
    while not os.path.isdir(root) and root != "/":
        root = os.path.dirname(root)
    _, free = machine.disk_kib(root)
    if free is not None and free < _LEAST_KIB:
        yield f"disk: {root}: the disk is full, {free} KiB are free; {_ROOM}"
    elif free is not None and finished:
        last = size(finished[0], _COUNT_S) >> 10
        goes_on = 0 if wanted["new"] else size(earlier[-1], _COUNT_S) >> 10
        if last - goes_on > free:
            wrote = f"the last run of this grid wrote {last >> 10} MiB"
            yield f"disk: {root}: {free >> 10} MiB are free, and {wrote}; {_ROOM}"
