"""The host's half keeps to bash 4.4, and the scripts that people start to bash 3.2: no script uses what came later.

The lists are those of bash's NEWS, as far as text can tell.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

CHECKOUT = Path(__file__).parents[3]
COMMENT = re.compile(r"(^|\s)#\s.*$", re.MULTILINE)


AFTER_4_4 = {
    r"\bEPOCH(REALTIME|SECONDS)\b(?!:?-)|\b(BASH_ARGV0|SRANDOM|GLOBSORT|BASH_MONOSECONDS)\b": "now=$EPOCHREALTIME",
    r"\bwait +(-\w+ +)*-\w*[fp]|\bwait +-n +[\"$%\d]": "wait -n -p pid",
    r"<\(.*\)[^\n]*\n\s*wait +\"?\$!": 'read -r x < <(date)\nwait "$!"',
    r"\b(localvar_inherit|assoc_expand_once|array_expand_once|patsub_replacement|varredir_close|globskipdots)\b": (
        "shopt -s assoc_expand_once"
    ),
    r"\b(declare|local|typeset) +-\w*I|\b(declare|local) +-\w*A\w* +\w+=\( *[^\[) ]": "local -A x=(a 1 b 2)",
    r"@[UuLKk]\}": "${name@U}",
    r"\[\[? +-v +\d|\bprintf\b[^\n]*%[-.\d*]*Q": "[[ -v 1 ]]",
    r"(?<!\\)\$\{[\s|]": "now=${ date; }",
}
AFTER_3_2 = {
    r"\b(declare|local|typeset) +-\w*[AgnlucI]": "local -A seen",
    r"\b(mapfile|readarray|coproc|BASHPID|globstar|lastpipe|inherit_errexit)\b": "mapfile -t lines <file",
    r"\|&|&>>|;&": "make |& tee log",
    r"\$\{\w+(\[[^]]*\])?[\^,]|@[A-Za-z]\}": "${name,,}",
    r"\{0\d+\.\.|\.\.\w+\.\.": "{01..10}",
    r"\bread +[^\n]*(-\w*[iN]\b|-t +[\d]*\.)": "read -t 0.1 x",
    r"\{\w+\}[<>]|\bprintf +-v +[\"']?\w+\[|%\([^)]*\)T": "exec {fd}<file",
    r"\[\[? +-v\b|\$'[^'\n]*\\u|:\d+: *-\d|\w\[-\d": "[[ -v name ]]",
    r"\bwait +-|\blocal +-(\s|;|$)": "wait -n",
    r"(?m)^(?!.*\$\{#)[^\n+]*\"\$\{\w+\[@\]\}\"": 'run "${words[@]}"',  # an array that may be empty
    **AFTER_4_4,
}
"""what came later -> an example of it"""


def code(text: str) -> str:
    return COMMENT.sub("", text)


def breaches(text: str, rules: Iterable[str]) -> list[str]:
    return [found[0] for rule in rules if (found := re.search(rule, code(text)))]


def host_scripts() -> Iterator[tuple[str, str]]:
    """What runs on a host: the library, the doctor, the held shell, and scripts as they are generated."""
    for folder in ("comborun/host", "remote", "tests/golden"):
        for path in sorted((CHECKOUT / folder).rglob("*.sh")):
            yield str(path.relative_to(CHECKOUT)), path.read_text()


def test_what_runs_on_a_host_keeps_to_bash_4_4() -> None:
    texts = dict(host_scripts())
    assert len(texts) > 5
    found = {path: breaches(text, AFTER_4_4) for path, text in texts.items()}
    assert {path: names for path, names in found.items() if names} == {}


def test_what_people_start_keeps_to_bash_3_2() -> None:
    for name in ("scripts/run_parallel.sh", "scripts/environment.sh", "tests/run.sh"):
        assert breaches((CHECKOUT / name).read_text(), AFTER_3_2) == []


def test_a_rule_finds_what_it_forbids() -> None:
    assert [rule for rule, example in AFTER_3_2.items() if not breaches(example, [rule])] == []
