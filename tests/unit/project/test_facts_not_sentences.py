"""No code reads a sentence that other code wrote: it asks a fact for its code and its fields.

The check reads the syntax of every module but those of `comborun/words`, which write the sentences. A value counts as a
sentence if it is

- the result of `say(...)`,
- an attribute or a key with a name in SENTENCES, such as `session.note` and `end.get("why", "")`,
- a variable of the same function to which one of these was assigned as it is.

Reading is: searching in it (`in`, `re`, `find`), cutting it (`split`, `partition`, `removeprefix` ...), asking how it
begins or ends, and comparing it with a literal text that is not empty. Asking whether it is empty, joining and showing
it are fine, and so is comparing two sentences.

It does not see a sentence under another name (`detail`, `line`), one that comes back from a function or an argument, or
one that was put into a list first.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from structure import CHECKOUT, modules

SENTENCES = {"note", "why", "remark", "hint", "uncounted", "message"}
NAMED = re.compile(rf"\b(say|{'|'.join(SENTENCES)})\b")
CUTS = {
    *("startswith", "endswith", "partition", "rpartition", "split", "rsplit", "splitlines", "removeprefix"),
    *("removesuffix", "find", "rfind", "index", "count", "replace"),
}
SEARCHES = {"search", "match", "fullmatch", "findall", "finditer", "split", "sub"}

SHOWN = {
    "comborun/errors.py:headline",
    "monitor/fleet.py:state",
}
"""places that only cut a text to one line, to show it"""


def is_sentence(node: ast.AST, variables: set[str]) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr in SENTENCES
    if isinstance(node, ast.Name):
        return node.id in variables
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Constant) and node.slice.value in SENTENCES
    if isinstance(node, ast.NamedExpr):
        return is_sentence(node.value, variables)
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Name):
        return node.func.id == "say"
    asked = node.args[0] if node.args else None
    of_key = isinstance(asked, ast.Constant) and asked.value in SENTENCES
    return isinstance(node.func, ast.Attribute) and node.func.attr == "get" and of_key


def sentences_of(function: ast.AST) -> set[str]:
    """Variables of a function that are a sentence."""
    found: set[str] = set()
    for node in ast.walk(function):
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign) and is_sentence(node.value, set()):
            targets = node.targets
        elif isinstance(node, ast.NamedExpr) and is_sentence(node.value, set()):
            targets = [node.target]
        found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return found


def reads(function: ast.AST) -> Iterator[int]:
    """The lines on which a function reads a sentence."""
    variables = sentences_of(function)
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            cuts = node.func.attr in CUTS and is_sentence(node.func.value, variables)
            searches = isinstance(node.func.value, ast.Name) and node.func.value.id == "re"
            if cuts or (searches and any(is_sentence(one, variables) for one in node.args)):
                yield node.lineno
        elif isinstance(node, ast.Compare):
            left, right = node.left, node.comparators[0]
            inside = isinstance(node.ops[0], (ast.In, ast.NotIn)) and is_sentence(right, variables)
            literal = any(isinstance(one, ast.Constant) and one.value not in ("", None) for one in (left, right))
            if inside or (literal and any(is_sentence(one, variables) for one in (left, right))):
                yield node.lineno


def places(text: str) -> Iterator[str]:
    """The functions that read a sentence."""
    named = [number for number, line in enumerate(text.split("\n"), 1) if NAMED.search(line)]
    for node in ast.walk(ast.parse(text)) if named else ():  # most functions name none, and are not looked at
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            within = any(node.lineno <= number <= (node.end_lineno or 0) for number in named)
            if within and any(reads(node)):
                yield node.name


def test_no_code_reads_a_sentence_that_other_code_wrote() -> None:
    found = set()
    for module, path in modules().items():
        if not module.startswith("comborun.words"):
            found |= {f"{path.relative_to(CHECKOUT)}:{name}" for name in places(path.read_text())}
    assert found - SHOWN == set()


def test_the_check_finds_what_it_says() -> None:
    bad = [
        'return "WRONG_GPU" in end.note',
        'return say(fact).startswith("it waits")',
        'why = end.get("why", "")\n    return why.partition(": ")[0]',
        'return re.search("all ([0-9]+) rows", counts.why)',
        'return session.note == "stopped"',
        'return record["note"].split()',
    ]
    fine = [
        'return f"{session.name}: {session.note}" if session.note else ""',
        "return before.hint == after.hint",
        'return fact.code == "waits"',
        'return end.note != ""',
        'return fact.text("server") in known',
    ]
    assert [list(places(f"def one():\n    {body}\n")) for body in bad] == [["one"]] * len(bad)
    assert [list(places(f"def one():\n    {body}\n")) for body in fine] == [[]] * len(fine)
