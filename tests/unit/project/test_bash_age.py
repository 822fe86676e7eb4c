"""The host's half keeps to bash 4.4, and the scripts that people start to bash 3.2: no script uses what came later.

The lists are those of bash's NEWS, as far as text can tell. `example` shows that a rule finds what it forbids.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).parents[3]
COMMENT = re.compile(r"(^|\s)#\s.*$", re.MULTILINE)


@dataclass(frozen=True)
class Rule:
    since: str
    name: str
    pattern: str
    example: str


AFTER_4_4 = (
    Rule("5.0", "EPOCH* without a default", r"\bEPOCH(REALTIME|SECONDS)\b(?!:?-)", 'now="$EPOCHREALTIME"'),
    Rule("5.0", "BASH_ARGV0", r"\bBASH_ARGV0\b", "BASH_ARGV0=comborun"),
    Rule("5.0", "wait -f", r"\bwait +-\w*f", 'wait -f "$pid"'),
    Rule("5.0", "wait for a process substitution", r"<\(.*\)[^\n]*\n\s*wait +\"?\$!", 'read -r x < <(date)\nwait "$!"'),
    Rule("5.0", "a coproc's name that is expanded", r"\bcoproc +\"?\$", "coproc $name { cat; }"),
    Rule("5.0", "history -d", r"\bhistory +-d", "history -d 1-3"),
    Rule(
        "5.0",
        "options of shopt",
        r"\b(localvar_(inherit|unset)|(assoc|array)_expand_once|progcomp_alias|patsub_replacement|varredir_close"
        r"|globskipdots|noexpand_translation|bash_source_fullpath)\b",
        "shopt -s assoc_expand_once",
    ),
    Rule("5.1", "SRANDOM", r"\bSRANDOM\b", "$((SRANDOM % 10))"),
    Rule("5.1", "wait -p", r"\bwait +(-\w+ +)*-\w*p", "wait -n -p pid"),
    Rule("5.1", "wait -n for some", r"\bwait +-n +[\"$%\d]", 'wait -n "$pid"'),
    Rule("5.1", "declare -I", r"\b(declare|local|typeset) +-\w*I", "local -I now"),
    Rule("5.1", "${x@U}", r"@[UuLKk]\}", "${name@U}"),
    Rule(
        "5.1", "pairs as an associative array", r"\b(declare|local) +-\w*A\w* +\w+=\( *[^\[) ]", "local -A x=(a 1 b 2)"
    ),
    Rule("5.1", "test -v of a positional parameter", r"\[\[? +-v +\d", "[[ -v 1 ]]"),
    Rule("5.2", "printf %Q", r"\bprintf\b[^\n]*%[-.\d*]*Q", "printf %Q x"),
    Rule("5.3", "${ command; }", r"(?<!\\)\$\{[\s|]", "now=${ date; }"),
    Rule("5.3", "variables", r"\b(GLOBSORT|BASH_MONOSECONDS|BASH_TRAPSIG)\b", "GLOBSORT=mtime"),
    Rule(
        "5.3",
        "trap -P, compgen -V, read -E, source -p",
        r"\b(trap +-P|compgen +-V|read +-\w*E|source +-p)\b",
        "trap -P INT",
    ),
)

AFTER_3_2 = (
    Rule("4.0", "associative arrays, name references", r"\b(declare|local|typeset) +-\w*[AgnlucI]", "local -A seen"),
    Rule("4.0", "mapfile", r"\b(mapfile|readarray)\b", "mapfile -t lines <file"),
    Rule("4.0", "coproc", r"\bcoproc\b", "coproc { cat; }"),
    Rule("4.0", "|& and &>>", r"\|&|&>>", "make |& tee log"),
    Rule("4.0", "${x^} and ${x,}", r"\$\{\w+(\[[^]]*\])?[\^,]", "${name,,}"),
    Rule("4.0", ";& and ;;&", r";&", "a) x ;&"),
    Rule("4.0", "{01..10} and steps", r"\{0\d+\.\.|\.\.\w+\.\.", "{01..10}"),
    Rule("4.0", "read -i, -N, and parts of a second", r"\bread +[^\n]*(-\w*[iN]\b|-t +[\d]*\.)", "read -t 0.1 x"),
    Rule("4.0", "BASHPID", r"\bBASHPID\b", "kill $BASHPID"),
    Rule("4.0", "options of shopt", r"\b(globstar|lastpipe|inherit_errexit|dirspell|autocd)\b", "shopt -s globstar"),
    Rule("4.1", "{fd}>", r"\{\w+\}[<>]", "exec {fd}<file"),
    Rule("4.1", "printf -v of an element", r"\bprintf +-v +[\"']?\w+\[", "printf -v a[1] x"),
    Rule("4.2", "printf %()T", r"%\([^)]*\)T", "printf '%(%F)T' -1"),
    Rule("4.2", "[[ -v", r"\[\[? +-v\b", "[[ -v name ]]"),
    Rule("4.2", "\\u and a length below zero", r"\$'[^'\n]*\\u|:\d+: *-\d", "$'\\u2713'"),
    Rule("4.3", "a[-1]", r"\w\[-\d", "${a[-1]}"),
    Rule("4.3", "wait -n", r"\bwait +-", "wait -n"),
    Rule("4.4", "${x@Q}", r"@[A-Za-z]\}", "${name@Q}"),
    Rule("4.4", "local -", r"\blocal +-(\s|;|$)", "local -; set -f"),
    Rule("4.4", "an array that may be empty", r"(?m)^(?!.*\$\{#)[^\n+]*\"\$\{\w+\[@\]\}\"", 'run "${words[@]}"'),
    *AFTER_4_4,
)

FINE_IN_4_4 = (
    "now=${EPOCHREALTIME-$(date +%s.%6N)}",
    "at=${EPOCHSECONDS:-0}",
    'wait -n\nwait; wait "$pid" 2>/dev/null',
    "mapfile -d '' -t words",
    'printf %q "${run@Q}"',
    "local -A told=([free]=0) seen=()",
    "local -n sums=$1",
    "shopt -s nullglob globstar",
    "${line//'{episodes}'/$count}",
    "read -r -t 0.01 -u 3 line",
)


FINE_IN_3_2 = (
    '[ ${#words[@]} -eq 0 ] || run "${words[@]}"',
    'run ${words[@]+"${words[@]}"}',
    "words[${#words[@]}]=one",
    "name=${path##*/} rest=${name#?} four=${name:0:4}",
    "read -r first rest <file",
)


def code(text: str) -> str:
    return COMMENT.sub("", text)


def breaches(text: str, rules: tuple[Rule, ...]) -> list[str]:
    return [f"{rule.name} ({rule.since})" for rule in rules if re.search(rule.pattern, code(text))]


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


def test_a_rule_finds_what_it_forbids_and_nothing_that_is_fine() -> None:
    for rule in AFTER_3_2:
        assert breaches(rule.example, (rule,)), rule
        assert not breaches(f"# {rule.example}", (rule,)), rule
    assert breaches("\n".join(FINE_IN_3_2), AFTER_3_2) == []
    assert breaches("\n".join(FINE_IN_4_4), AFTER_4_4) == []
