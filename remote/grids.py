"""Reads a grid with checks that need a machine, finds what it needs on its host, and plans it with what is known.

bash parses its setup, a glob finds its policies, and its text shows folders, programs and files that must exist. The
calibration beside it has the expected times and memory.
"""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from comborun.errors import GridError, Problem, UserError
from comborun.generate.script import says_something
from comborun.grid import Grid, load_grid
from comborun.grid.combos import CHECKPOINT, MatchedFile, named_policies
from comborun.model.command import values_of
from comborun.planner.knowledge import NOTHING_KNOWN, Knowledge, calibration_path, calibrations, knowledge_of
from comborun.planner.laying import Drafts, lay_out, lay_out_on_slurm
from comborun.remote import program
from comborun.remote.transport import LocalTransport
from comborun.words import say

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from comborun.grid import SettingKeys
    from comborun.grid.combos import Combo, PolicyGlob
    from comborun.grid.keys.axes import AxisEntry
    from comborun.model.plan import Plan
    from comborun.model.resources import HostFacts
    from comborun.planner.knowledge import Calibration
    from comborun.remote.transport import Transport
    from comborun.rules.facts import Fact

_MOST = 2000
"""most files of a glob"""
_SUFFIXES = re.compile(
    r"\.(py|sh|bash|pt|pth|ckpt|safetensors|onnx|ya?ml|toml|cfg|ini|json|usda?|xml|urdf|zip|np[yz]|pkl|h5|hdf5|bin|tar)"
)
"""suffixes of files that a command reads"""
_SCRIPTS = (".py", ".sh", ".bash")
_WRITTEN = re.compile(r"out|log|save|record|result|dump|video|report|tmp|cache|write", re.IGNORECASE)
"""words in options that name output files"""
_OPEN = set("{}$`*?;|&<>()")
"""a word with one of these is known only on the host, when the session starts"""
_PLACEHOLDER = re.compile(r"\{((?:policy|environment|server)(?:\.[A-Za-z0-9_-]+)?)\}")
_CONDA = re.compile(r"^\s*(?:conda|mamba|micromamba) activate ([\w./~-]+)\s*$", re.MULTILINE)
_HARMLESS = re.compile(
    r"\s*(#.*|(?!.*([;&|]|\bPATH=))(export \w+=.*|(conda|mamba|micromamba) activate .*)"
    r"|(source|\.) \S+(/activate|/conda\.sh))?\s*"
)
"""lines of setup whose effect on PATH is known: none, or that of an environment"""
_SOURCES = re.compile(r"(?:source|\.)[ \t]+([\w./~+@%=-]+)(?!.*\|\|)")
_MOVES = re.compile(r"(?:^|[;&|]|\s)(?:cd|pushd)\s")
_MOVED = re.compile(r"(-C|--cwd|--chdir|--directory|--project)(=.*)?")
"""options that name the folder to which the words behind them are relative"""


def read_grid(path: Path, given: tuple[str, ...] = ()) -> Grid:
    """Read a grid. bash parses every `setup`, without running it. Raises UserError with all mistakes."""
    grid = load_grid(path, given)
    for text in filter(says_something, dict.fromkeys(combo.settings.setup for combo in grid.combos)):
        done = LocalTransport().run("bash -n", stdin=f"setup() {{\n{text}\n}}\n".encode())
        if done.code:
            raise UserError(f"{grid.path}: bash can't read setup:\n{done.complaint}", "check quotes, `fi` and `done`")
    return grid


def with_policies(grid: Grid, transport: Transport) -> Grid:
    """The grid with the files of its glob on the host, if it has one. Raises GridError if there are none."""
    glob = grid.policy_glob
    if glob is None or grid.policy_files:
        return grid
    matches = _find(transport, glob, grid.host_python)
    if not matches:
        hint = 'mind that `~/` is the home there; a pattern in quotes, such as "~/ckpt/*.pt"'
        raise _refused(grid, glob, f"nothing on {transport.host} matches {glob}", hint)
    if len(matches) > _MOST:
        raise _refused(grid, glob, f"more than {_MOST} files match {glob}", "make it narrower, or `exclude` some")
    try:
        found = named_policies(matches)
    except UserError as error:
        raise _refused(grid, glob, error.message, error.hint) from None
    return grid.with_files(found)


def _refused(grid: Grid, glob: PolicyGlob, message: str, hint: str) -> GridError:
    return GridError((Problem(str(grid.path), glob.line, glob.column, f"`policies`: {message}", hint),), str(grid.path))


def _find(transport: Transport, glob: PolicyGlob, host_python: str | None) -> tuple[MatchedFile, ...]:
    """The files and folders that a glob finds on the host, in one round trip, without links that lead nowhere."""
    question = json.dumps({"patterns": glob.patterns, "exclude": glob.exclude}).encode()
    python = program.Python(named=host_python or "")
    done = program.run_packed(transport, "runs", "policies", stdin=question, timeout=120, python=python)
    found = program.answer(transport, done, f"{transport.host} can't look for {glob}")
    return tuple(MatchedFile(*one) for one in found)


# Its plan


def known_of(grid: Grid, host: HostFacts) -> Knowledge:
    """The knowledge from a calibration of this grid on this host."""
    of_host = [one for one in reversed(read_calibrations(grid)) if one.is_of(host)]
    sessions = lay_out(grid, host).sessions if of_host else ()
    found = (knowledge_of(one, sessions, calibration_path(grid.path).name) for one in of_host)
    return next(filter(None, found), NOTHING_KNOWN)


def read_calibrations(grid: Grid) -> tuple[Calibration, ...]:
    """The calibrations in the file beside the grid, if any. Raises UserError if it can't be read."""
    path = calibration_path(grid.path)
    try:
        return calibrations(path.read_text(encoding="utf-8"), path)
    except FileNotFoundError:
        return ()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} can't be read: {error}", "") from None


def laid_out(
    grid: Grid,
    host: HostFacts,
    shipped: str,
    known: Knowledge | None = None,
    *,
    slurm: bool,
    drafts: Drafts | None = None,
) -> Plan:
    """The plan for the wanted engine; without `known`, with all that is known. `drafts`: of other hosts."""
    if slurm:
        return lay_out_on_slurm(grid, host, shipped)
    return lay_out(grid, host, shipped, known_of(grid, host) if known is None else known, drafts=drafts)


# The needs that a grid's text shows


def preflight_question(
    grid: Grid, *, local: bool, windows: bool = True, new: bool = True, displays: bool = True
) -> bytes:
    """The question for comborun/host/doctor/preflight.py. `windows`: sessions run on that machine itself. `displays`:
    whether to look for Xvfb, which the doctor does by itself.
    """
    needs = needs_of(grid, local=local)
    files = ((combo.policy.name, _checkpoint(combo.policy)) for combo in grid.combos)
    own = (combo.settings.display and combo.settings.display.own for combo in grid.combos)
    asked = {
        "windows": windows,
        "xvfb": displays and any(own),
        "new": new,
        "name": grid.name,
        "root": grid.root,
        "bring": _bringing(grid),
        "checkpoints": {one: path for one, path in files if path},
    }
    return json.dumps(
        {**asked, "programs": [json.loads(one) for one in dict.fromkeys(map(json.dumps, needs))]}
    ).encode()


def _checkpoint(policy: AxisEntry) -> str:
    """The file of a policy: its attribute `checkpoint`, else its first attribute that is a path."""
    values = [policy.attributes.get(CHECKPOINT, ""), *policy.attributes.values()]
    return next((value for value in values if value.startswith(("/", "~/")) and _known(value)), "")


def not_ready(lacks: Sequence[Fact], host: str, *others: str) -> str:
    """An error text with a line for each lack and for `others`; a single one stands in the first line."""
    lines = [*map(say, lacks), *others]
    if len(lines) == 1:
        return f"{host} is not ready for this grid: {lines[0]}"
    return f"{host} is not ready for this grid, {len(lines)} things are wrong:" + "".join(f"\n  {one}" for one in lines)


def needs_of(grid: Grid, *, local: bool) -> list[dict[str, Any]]:
    """What the commands of its sessions, its model servers and its `after` need on its host."""
    return [
        *(_of_combo(grid, combo, local=local) for combo in grid.combos),
        *(
            _needs(
                *(grid, keys.command or "", keys.setup, _placed(keys.workdir, grid, local=local)),
                values_of("server", name, keys.attributes),
            )
            for name, keys in grid.servers.items()
        ),
        *([_needs(grid, grid.after, grid.setup, folder_of(grid, grid, local=local), {})] if grid.after else ()),
    ]


def _of_combo(grid: Grid, combo: Combo, *, local: bool) -> dict[str, Any]:
    settings, folder = combo.settings, folder_of(combo.settings, grid, local=local)
    if box := settings.container:  # its program and files are in the image
        given = box.runtime != "docker" or "--user" in box.options
        return _needs(grid, "", "", "", {}) | {"runtime": box.runtime, "user_given": given}
    values = values_of("policy", combo.policy.name, combo.policy.attributes)
    values |= values_of("environment", combo.environment.name, combo.environment.attributes)
    return _needs(grid, settings.command, settings.setup, folder, values)


def _needs(grid: Grid, command: str, setup: str, folder: str | None, values: Mapping[str, str]) -> dict[str, Any]:
    """What a program needs on its host. No `folder`: nothing says where it works."""
    environments, words = _CONDA.findall(setup), _words(command, values)
    moved = bool(_MOVES.search(setup)) or any(map(_MOVED.fullmatch, words))

    def looked_for(path: str) -> bool:
        settled = path.startswith(("/", "~")) or not moved
        return settled and not _shipped(path, grid, folder)

    program = words[0] if words and _known(words[0]) else ""
    placeless = folder is None
    read = {value for key, value in values.items() if key.startswith(("policy.", "server."))}
    files = dict.fromkeys([*_files(words, read, placeless=placeless), *_sourced(setup)])
    return {
        "folder": "" if not folder or _made(folder, grid) else folder,
        "placeless": placeless,
        "setup": setup,
        "conda": environments,
        "program": program if "/" not in program or looked_for(program) else "",
        "files": list(filter(looked_for, files)),
        "harmless": all(map(_HARMLESS.fullmatch, setup.splitlines())),
    }


def _sourced(setup: str) -> Iterator[str]:
    """Files that setup reads in any case, as far as it is known what the lines in front of them do."""
    for line in setup.splitlines():
        found = _SOURCES.match(line)
        if found and ("/" in found[1] or found[1].endswith((".sh", ".bash"))):
            yield found[1]
        if not _HARMLESS.fullmatch(line):
            return


def _bringing(grid: Grid) -> dict[str, str]:
    """What lets the host find a file that is relative: a folder of `sync`, or one that could be synced to."""
    for one in grid.sync:
        if not (grid.path.parent / Path(one.source).expanduser()).is_file():
            return {"sync_from": one.source, "sync_to": one.to}
    return {"folder": f"~/{grid.path.resolve().parent.name}"}


def folder_of(settings: SettingKeys, grid: Grid, *, local: bool) -> str | None:
    """The folder of its command; None if unknown."""
    return _placed(settings.workdir.folder or settings.workdir.link_from or ("." if local else None), grid, local=local)


def _placed(workdir: str | None, grid: Grid, *, local: bool) -> str | None:
    if workdir is None or workdir.startswith(("/", "~")):
        return workdir
    return str((grid.path.parent / workdir).resolve()) if local else None


def _words(command: str, values: Mapping[str, str]) -> list[str]:
    try:
        return [_PLACEHOLDER.sub(lambda match: values.get(match[1], match[0]), word) for word in shlex.split(command)]
    except ValueError:
        return []


def _known(word: str) -> bool:
    return not set(word) & _OPEN


def _files(words: Sequence[str], read: Collection[str], *, placeless: bool) -> Iterator[str]:
    """Files that the command reads: words with such a suffix, and absolute paths in attributes (`read`)."""
    for number, word in enumerate(words):
        option, _, value = word.rpartition("=")
        option = option or (words[number - 1] if number and words[number - 1].startswith("-") else "")
        if not _known(value) or value.startswith("-") or _WRITTEN.search(option):
            continue
        suffix, absolute = PurePosixPath(value).suffix, value.startswith(("/", "~/"))
        placed = absolute or "/" in value or value in read
        dotted = placeless and value.startswith(("./", "../"))
        if dotted or (absolute and value in read) or (placed and _SUFFIXES.fullmatch(suffix)) or suffix in _SCRIPTS:
            yield value


def _made(folder: str, grid: Grid) -> bool:
    """Whether `sync` makes the folder, for itself or for what it puts there."""
    return _shipped(folder, grid) or any(PurePosixPath(one.to).is_relative_to(folder) for one in grid.sync)


def _shipped(path: str, grid: Grid, folder: str | None = "") -> bool:
    """Whether `sync` copies it."""
    place = path if path.startswith(("/", "~")) else f"{folder}/{path}"
    return any(PurePosixPath(place).is_relative_to(one.to) for one in grid.sync)
