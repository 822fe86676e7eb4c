"""`setup`: it stops at its first line that fails, and at nothing that fails inside what a line calls."""

from __future__ import annotations

from pathlib import Path

import pytest
from box import Box, Script, bash
from session_by_hand import by_hand

from comborun.rules.vocabulary import Cause

CONDA = r"""
conda() {
  local answer
  answer=$(false)
  grep -q nothing /dev/null
  if [[ $1 != activate ]]; then return 0; fi
  [[ $2 == good ]] || {
    printf '\nEnvironmentNameNotFound: no environment %s\nYou can list them.\n\n' "$2" >&2
    return 1
  }
  export CONDA_DEFAULT_ENV=$2
}
false
"""
"""as conda's own script: a function with failures inside, and failing lines at the top of the sourced file"""
ROS = """\
[ -n "$NOWHERE" ] && echo never
unset NOWHERE; false
_loop() { false; return 0; }
_loop
export ROS_DISTRO=humble
"""
STRICT = "set -eu\ntrue\n"
LEAVES = "exit 9\n"

FAILED = {
    "a line in the middle": ("false\necho go on", "setup line 1 failed with code 1: false"),
    "a file that is not there": (
        "echo first\nsource ./absent.sh\necho go on",
        "setup line 2 failed with code 1: source ./absent.sh: ./absent.sh: No such file or directory",
    ),
    "an environment that is not there": (
        "source ./conda.sh || true\nconda activate nope\necho go on",
        "setup line 2 failed with code 1: conda activate nope: EnvironmentNameNotFound: no environment nope",
    ),
    "a program that is not there": (
        "module load cuda",
        "setup line 1 failed with code 127: module load cuda: module: ",
    ),
    "a folder": ("cd /no/such/folder\necho go on", "setup line 1 failed with code 1: cd /no/such/folder: cd: "),
    "within a loop": ("for i in 1 2; do\n  echo $i\n  false\ndone", "setup line 3 failed with code 1: false: 1"),
    "the end of a chain": ("true && false", "setup line 1 failed with code 1: true && false"),
    "an assignment": ("x=$(false)\necho go on", "setup line 1 failed with code 1: x=$(false)"),
    "exit": ("exit 3", "setup line 1 failed with code 3: exit 3"),
    "exit with 0": ("true\nexit 0", "setup line 2 failed with code 0: exit 0"),
    "a script that leaves": ("source ./leaves.sh\necho go on", "setup line 1 failed with code 9: source ./leaves.sh"),
    "return": ("return 3", "setup returned 3"),
    "a function of its own": ("f() { return 4; }\nf\necho go on", "setup line 2 failed with code 4: f"),
    "a pipe that is to tell": ("set -o pipefail\nfalse | cat", "setup line 2 failed with code 1: false | cat"),
}
GOES_ON = {
    "conda": "source ./conda.sh || true\nconda activate good",
    "ros": "source ./ros.sh",
    "strict scripts": 'source ./strict.sh\nsource ./ros.sh\necho "$SURELY_UNSET_VARIABLE"',
    "or": "false || true\nfalse || echo fine",
    "and": '[ -n "$NOWHERE" ] && echo never\ntrue',
    "if": "if false; then echo never; elif grep -q x /dev/null; then echo never; fi",
    "not": "! false",
    "pipe": "false | cat",
    "a function with failures inside": "f() { false; grep x /dev/null; true; }\nf",
    "a loop that reads": "while read -r line; do printf '%s\\n' \"$line\"; done <<<'one'\nline=kept",
    "a here document": "cat <<END\nfalse\nexit 3\nEND",
    "a background job": "sleep 0.01 &\nfalse &\nwait",
    "a subshell that goes on": "(false; true)",
    "return": "return 0\nfalse",
}


def by_hand_in(box: Box, folder: Path, setup: str) -> None:
    for name, text in {"conda": CONDA, "ros": ROS, "strict": STRICT, "leaves": LEAVES}.items():
        (folder / f"{name}.sh").write_text(text)
    script = bash("echo evaluated", setup=setup, workdir=str(folder))
    by_hand(box, script)


@pytest.mark.parametrize("case", FAILED)
def test_setup_stops_at_its_first_line_that_fails(box: Box, tmp_path: Path, case: str) -> None:
    setup, note = FAILED[case]
    by_hand_in(box, tmp_path, setup)
    end = box.ended("stairs_flat")
    assert (end.cause, end.code) == (Cause.LAUNCH_FAILED, 78)
    assert end.note.startswith(note)
    log = box.log("stairs_flat").splitlines()
    assert not {"evaluated", "go on"} & set(log)
    assert [line.startswith(f"comborun: {note}") for line in log if line.startswith("comborun: ")] == [True]


@pytest.mark.parametrize("case", GOES_ON)
def test_what_fails_inside_or_is_caught_does_not_count(box: Box, tmp_path: Path, case: str) -> None:
    by_hand_in(box, tmp_path, GOES_ON[case])
    assert box.log("stairs_flat").splitlines()[-1] == "evaluated"
    assert box.ended("stairs_flat").clean


def test_what_setup_sets_is_there_for_the_command_whatever_it_is_called(box: Box) -> None:
    setup = "export line=a failure=b run=c script=d code=e name=f first=g\nunset run"
    by_hand(box, Script(("bash", "-c", "'echo $line $failure $run. $script $code $name $first'"), setup=setup))
    assert box.log("stairs_flat") == "a b . d e f g\n"
