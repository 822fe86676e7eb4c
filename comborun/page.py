"""The bash script of a session. It needs no library and runs by hand as it runs under its supervisor. Pure.

A start sets COMBORUN_OUTPUT_DIR, COMBORUN_GPUS and so on in the environment. By hand, the script's own defaults apply.
Same grid, same bytes.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from comborun.command import FILES
from comborun.resources import BARE, Around, BashWord
from comborun.servers import FIELDS, variable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from comborun.resources import Container, Display, PinMode


THREAD_VARIABLES = (
    *("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"),
    "PXR_WORK_THREAD_LIMIT",  # of USD, in Isaac Sim
    "LP_NUM_THREADS",  # of Mesa, where the processor renders
)
"""Libraries start a thread for each core of the machine; sessions side by side then slow each other down."""
PORT_BY_HAND = 28765

_FAIL = """\
session_fail() { # CODE WHY: the command is not started
  printf 'comborun: %s\\n' "${*:2}" >&2
  [[ ! $session_failure ]] || printf '%s\\n' "${*:2}" >"$session_failure"
  exit "$1"
}"""
_NO_JSON = r"""
[[ $COMBORUN_OUTPUT_DIR != *[\"\\]* ]] ||
  session_fail 78 "the run's folder has a quote or a backslash in its name, and its path goes into JSON"
""".strip()
_SETUP = """\
# Setup stops at its first line that fails; what fails inside a script or function that it calls does not count.
setup_next() {
  ((BASH_LINENO[0] == 1)) || setup_at=${BASH_LINENO[0]}
  set +eu # of a sourced script
}
setup_failed() { # [exit]
  local code=$? lines
  [[ ${1-} ]] || ((${#BASH_SOURCE[@]} < 4)) || return 0 # in a sourced script
  trap - DEBUG ERR EXIT
  mapfile -t lines <"$session_script"
  session_fail 78 "setup line $((setup_at - setup_first)) failed with code $code: ${lines[setup_at - 1]}"
}"""
_SETUP_TRAPS = "trap setup_next DEBUG && trap setup_failed ERR && trap 'setup_failed exit' EXIT && setup_first=$LINENO"
_SETUP_CALL = """\
setup
setup_code=$?
trap - DEBUG ERR EXIT
set +eu
((setup_code == 0)) || session_fail 78 "setup returned $setup_code\""""
_RUN = """\
shopt -s execfail
exec -- "${command[@]}" || session_fail $? "${command[0]} could not be run in $PWD\""""
PINNED = {"cvd", "both"}
"""modes in which CUDA_VISIBLE_DEVICES names the granted GPUs"""


@dataclass(frozen=True)
class Page:
    """The parts of the script."""

    name: str
    about: str
    """one line: what it runs"""
    command: tuple[BashWord, ...]
    workdir: BashWord | None = None
    variables: tuple[tuple[str, BashWord], ...] = ()
    setup: str = ""
    first: int = 0
    count: int = 0
    seed: int | None = None
    """of episode 0, for a program that takes a range by its first seed"""
    listed: bool = False
    """its program gets the numbers of its episodes"""
    family: str = "sessions"
    """`servers` for a model server: the folder of the run that holds it"""
    gpus: int = 0
    pin: PinMode = "cvd"
    threads: int = 0
    display: Display | None = None
    port: bool = False
    egl: bool = False
    servers: tuple[str, ...] = ()
    """model servers that it asks"""
    around: Around = BARE
    records: tuple[str, ...] = ()
    """globs of its records: none of them is linked into a folder of links"""
    secrets: tuple[str, ...] = ()
    """names of environment variables that go into its container"""

    @property
    def text(self) -> str:
        return "\n".join((*_head(self), "", *_granted(self), "", *_FAIL.splitlines(), *_body(self), ""))


def says_something(setup: str) -> bool:
    """Whether there is a command in it: bash takes a function of comments only for a mistake."""
    return any(line.strip() and not line.strip().startswith("#") for line in setup.splitlines())


def command_lines(command: tuple[BashWord, ...], name: str = "command") -> Iterator[str]:
    """An array, a flag with its values on a line of their own."""
    yield from (f"{name}=(", *(f"  {line}" for line in _flag_per_line(command)), ")")


def exports(variables: Iterable[tuple[str, BashWord]]) -> Iterator[str]:
    for name, value in variables:
        yield f"export {name}={value}"


def _head(page: Page) -> Iterator[str]:
    yield "#!/usr/bin/env bash"
    yield f"# {page.name}: {page.about}"
    yield "# By hand, in any terminal: bash session.sh. What a start grants (COMBORUN_...) has then the values below."


def _episodes(page: Page) -> Iterator[str]:
    """Their range, in all forms that programs take."""
    first, count = "COMBORUN_FIRST_EPISODE", "COMBORUN_EPISODES"
    yield f"export {first}=${{{first}:-{page.first}}} {count}=${{{count}:-{page.count}}}"
    yield f"export COMBORUN_LAST_EPISODE=$(({first} + {count} - 1))"
    yield f"export COMBORUN_END_EPISODE=$(({first} + {count}))"
    if page.seed is not None:
        yield f"export COMBORUN_FIRST_SEED=$(({page.seed} + {first}))"
    if page.listed:
        yield f'COMBORUN_EPISODE_LIST=$(seq -s , "${first}" "$COMBORUN_LAST_EPISODE")'
        yield "export COMBORUN_EPISODE_LIST"
    if ranks := page.around.ranks:
        yield f"export COMBORUN_EPISODES_PER_RANK=$((({count} + {ranks - 1}) / {ranks}))"


def _granted(page: Page) -> Iterator[str]:
    folder = f"{page.family}/{page.name}"
    yield 'run=${COMBORUN_RUN_DIR:-$(cd -- "${0%session.sh}../.." && pwd)}'
    yield "session_failure=${COMBORUN_FAILURE-}"
    if says_something(page.setup):
        yield f"session_script=$run/{folder}/session.sh"
    yield "export COMBORUN_RUN_DIR=$run COMBORUN_RESULTS_DIR=$run/results"
    yield "export COMBORUN_RUN=${COMBORUN_RUN:-${run##*/}} COMBORUN_ATTEMPT=${COMBORUN_ATTEMPT:-1}"
    yield f"export COMBORUN_SESSION=${{COMBORUN_SESSION:-by-hand/{page.name}/$$}}"
    yield f"export COMBORUN_OUTPUT_DIR=${{COMBORUN_OUTPUT_DIR:-$run/{folder}/by-hand}}"
    yield from _episodes(page)
    if page.gpus:
        yield from _gpus(page)
    if page.egl:
        yield "export COMBORUN_EGL_DEVICE=${COMBORUN_EGL_DEVICE-${COMBORUN_GPU-0}}"
    if page.port:
        yield f"export COMBORUN_PORT=${{COMBORUN_PORT:-{PORT_BY_HAND}}}"
    if page.display:
        yield f"export COMBORUN_DISPLAY=${{COMBORUN_DISPLAY-{_display(page.display)}}}"
        yield "export DISPLAY=$COMBORUN_DISPLAY"
    for name in page.servers:
        yield from _server(name)
    yield "export PYTHONUNBUFFERED=1"
    if page.threads:
        threads = max(1, page.threads // max(1, page.around.ranks))  # ranks have the session's cores together
        yield f"export COMBORUN_THREADS={threads}"
        yield from (f"export {name}=$COMBORUN_THREADS" for name in THREAD_VARIABLES)


def _gpus(page: Page) -> Iterator[str]:
    numbers = ",".join(map(str, range(page.gpus)))
    yield f"export COMBORUN_GPUS=${{COMBORUN_GPUS-{numbers}}} COMBORUN_GPU_COUNT=${{COMBORUN_GPU_COUNT-{page.gpus}}}"
    yield "export COMBORUN_GPU=${COMBORUN_GPUS%%,*}"
    if page.pin in PINNED:
        yield f"export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=${{CUDA_VISIBLE_DEVICES-{numbers}}}"


def _display(display: Display) -> str:
    if display.own:
        return "${DISPLAY-:0}"
    return f":{display.by_gpu[0][1]}" if display.by_gpu else f":{display.server}"


def _server(name: str) -> Iterator[str]:
    """Where a model server is; by hand, where one of this run is ready."""
    url, host, port = (variable(name, field) for field in FIELDS)
    yield f'export {url}="${{{url}:-$(cat -- "$run/servers/{name}"{{,-gpu*}}/url 2>/dev/null | head -n 1)}}"'
    yield f"export {port}=${{{url}##*:}} {host}=${{{url}#http://}}"
    yield f"export {host}=${{{host}%:*}}"


def _body(page: Page) -> Iterator[str]:
    """Everything after the values. With setup, the page itself goes on inside its container."""
    box, setup = page.around.container, says_something(page.setup)
    if box and setup:
        yield from ("", "if [[ ! ${COMBORUN_INSIDE-} ]]; then # outside the container, up to `fi`")
    else:
        yield ""
    yield from _surroundings(page)
    if box:
        yield from _container(page, box, inside=setup)
    if box and setup:
        yield from ('exec -- "${container[@]}"', "fi", "unset COMBORUN_INSIDE")
    yield "unset COMBORUN_FAILURE"
    if setup:
        yield from ("", *_SETUP.splitlines(), "setup() {")
        yield _SETUP_TRAPS
        yield from (*page.setup.rstrip("\n").split("\n"), "}", *_SETUP_CALL.splitlines())
    yield from ("", *command_lines(page.command))
    if box and not setup:
        yield 'command=("${container[@]}" "${command[@]}")'
    yield from _RUN.splitlines()


def _surroundings(page: Page) -> Iterator[str]:
    yield '[[ -d $COMBORUN_OUTPUT_DIR ]] || mkdir -p -- "$COMBORUN_OUTPUT_DIR" ||'
    yield '  session_fail 73 "can\'t make $COMBORUN_OUTPUT_DIR"'
    yield from _files(page.around.files)
    box = page.around.container
    if not (box and box.runtime == "docker"):
        yield from exports(page.variables)
    yield from _links(page)
    if page.workdir and not page.around.links and not box:
        yield f'cd -- {page.workdir} || session_fail 78 "there is no folder" {page.workdir}'


def _files(files: tuple[tuple[str, str], ...]) -> Iterator[str]:
    if not files:
        return
    yield f'export {FILES}="${{{FILES}:-$COMBORUN_OUTPUT_DIR/files}}"'
    yield f'mkdir -p -- "${FILES}" || session_fail 73 "can\'t make ${FILES}"'
    if any(name.endswith(".json") for name, _ in files):
        yield _NO_JSON
    for name, text in files:
        quoted = shlex.quote(name)
        yield f'printf \'%s\' {text} >"${FILES}"/{quoted} || session_fail 73 "can\'t write" {quoted}'


def _links(page: Page) -> Iterator[str]:
    """A folder of links to all entries of another, hidden ones too."""
    if not (links := page.around.links):
        return
    source = links.source
    yield f"from={source} work=$COMBORUN_OUTPUT_DIR/work"
    yield '[[ -d $from ]] || session_fail 78 "there is no folder $from"'
    yield 'mkdir -p -- "$work" || session_fail 73 "can\'t make $work"'
    without = "".join(f" ! -name {shlex.quote(pattern)}" for pattern in links.exclude)
    yield f'find "${{from%/}}/" -mindepth 1 -maxdepth 1{without} -exec ln -sfn -t "$work" -- {{}} + ||'
    yield '  session_fail 73 "can\'t make links in $work"'
    if page.records:  # a link that looks like a record would be counted as one of this attempt's
        yield "shopt -s nullglob globstar"
        yield f"patterns=({' '.join(map(shlex.quote, page.records))})"
        yield 'for pattern in "${patterns[@]}"; do'
        yield "  # shellcheck disable=SC2206 # a pattern"
        yield '  IFS= files=("$COMBORUN_OUTPUT_DIR"/$pattern)'
        yield '  for file in "${files[@]}"; do'
        yield '    [[ ! -L $file || ${file%/*} != "$work" ]] || rm -f -- "$file"'
        yield from ("  done", "done", "shopt -u nullglob globstar", "unset IFS")
    if not page.around.container:
        yield 'cd -- "$work" || session_fail 78 "there is no folder $work"'


def _container(page: Page, box: Container, *, inside: bool) -> Iterator[str]:
    """The array that starts the container, up to the image."""
    colon = f"the run's folder has a colon in its name, which {box.runtime} can't mount"
    yield f'[[ $run != *:* ]] || session_fail 78 "{colon}"'
    yield from _docker(page, box) if box.runtime == "docker" else _apptainer(page, box)
    yield "container+=("
    yield from (f"  {option}" for option in box.options)
    yield f"  {box.image}"
    if inside:
        yield '  bash "$session_script"'
    yield ")"


def _mounts(page: Page, box: Container) -> tuple[str, ...]:
    return ('"$run:$run"', *(('"$from:$from"',) if page.around.links else ()), *box.mounts)


def _place(page: Page) -> str:
    """The folder of the command in its container."""
    return '"$work"' if page.around.links else page.workdir or ""


def _docker(page: Page, box: Container) -> Iterator[str]:
    """A docker container is not our child and outlives its client, so it is ended by its name."""
    yield "container=("
    yield "  docker run --rm --init"
    yield '  "--name=comborun-${COMBORUN_SESSION//\\//-}"'
    yield '  "--label=comborun=$COMBORUN_SESSION"'
    yield "  --network=host"
    yield '  "--user=$UID:${GROUPS[0]}"'
    if page.gpus:
        pinned = "${CUDA_VISIBLE_DEVICES:-$COMBORUN_GPUS}" if page.pin in PINNED else "$COMBORUN_GPUS"
        yield f'  "--gpus=\\"device={pinned}\\""'
    yield from (f"  --volume={mount}" for mount in _mounts(page, box))
    if place := _place(page):
        yield f"  --workdir={place}"
    yield ")"
    names = ["PYTHONUNBUFFERED", "CUDA_DEVICE_ORDER", "DISPLAY", "XAUTHORITY"]
    names += [*(THREAD_VARIABLES if page.threads else ()), *page.secrets]
    yield "export COMBORUN_INSIDE=1"
    yield 'names=("${!COMBORUN_@}" # handed on by name: no command line shows a secret'
    yield from (f"  {name}" for name in names)
    yield ")"
    yield 'for name in "${names[@]}"; do'
    yield '  [[ ! -v $name ]] || container+=("--env=$name")'
    yield "done"
    if page.variables:
        yield from ("container+=(", *(f"  --env={name}={value}" for name, value in page.variables), ")")


def _apptainer(page: Page, box: Container) -> Iterator[str]:
    yield "export COMBORUN_INSIDE=1"
    yield "container=("
    yield f"  apptainer exec{' --nv' if page.gpus else ''}"
    yield from (f"  --bind={mount}" for mount in _mounts(page, box))
    if place := _place(page):
        yield f"  --pwd={place}"
    yield ")"


def _flag_per_line(command: tuple[BashWord, ...]) -> Iterator[str]:
    """The words of a command, a flag with its values on a line of their own."""
    line: list[str] = []
    for word in command:
        if line and (word.startswith("-") or not line[0].startswith("-")):
            yield " ".join(line)
            line = []
        line.append(word)
    yield " ".join(line)
