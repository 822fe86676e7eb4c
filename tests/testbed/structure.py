"""The structure of a checkout in numbers: `python tests/testbed/structure.py [CHECKOUT]`.

Lines and files by room, circles of files (imports for types included), modules that one other module imports, and
definitions that are used once. Read from the syntax trees; nothing is imported or run.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
LINKED = ("monitor", "remote", "reporter")
"""folders at the top that are linked into the package"""


def modules(checkout: Path = CHECKOUT) -> dict[str, Path]:
    """Every module of the product by its dotted name."""
    package = checkout / "comborun"
    paths = [*package.rglob("*.py"), *(path for name in LINKED for path in (checkout / name).rglob("*.py"))]
    found = {}
    for path in paths:
        relative = path.relative_to(checkout)
        if relative.parts[0] == "comborun" and relative.parts[1] in LINKED:
            continue
        words = [*(() if relative.parts[0] == "comborun" else ("comborun",)), *relative.with_suffix("").parts]
        found[".".join(words[:-1] if words[-1] == "__init__" else words)] = path
    return dict(sorted(found.items()))


@cache
def imports(path: Path) -> set[str]:
    """What a module names in its imports: modules, and names that may be modules."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            assert node.module
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def graph(found: Mapping[str, Path]) -> dict[str, set[str]]:
    """Module -> modules that it imports. A package is not an import of its own where only a module of it is meant."""
    arrows = {}
    for name, path in found.items():
        asked = {other for other in imports(path) if other in found and other != name}
        inside = {other for other in asked if any(one.startswith(f"{other}.") for one in {*asked, name})}
        arrows[name] = asked - inside
    return arrows


def circles(arrows: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """Circles of modules, one for each cut that would be needed; none where the imports form no circle."""
    left = {name: set(others) for name, others in arrows.items()}
    found = []
    while True:
        try:
            TopologicalSorter(left).prepare()
        except CycleError as error:
            circle = error.args[1]
            found.append(list(reversed(circle)))
            for name, other in zip(circle[1:], circle, strict=False):
                left[name].discard(other)
        else:
            return found


def _room(path: Path, checkout: Path) -> str:
    relative = path.relative_to(checkout)
    return "/".join(relative.parts[:-1][: 3 if relative.parts[1:2] in {("host",), ("rules",)} else 2])


def _definitions(found: Iterable[Path]) -> tuple[Counter[str], Counter[str], Counter[str]]:
    """How often each class and each function is defined, and how often each name is used."""
    classes: Counter[str] = Counter()
    functions: Counter[str] = Counter()
    words: Counter[str] = Counter()
    for path in found:
        text = path.read_text("utf-8")
        words.update(re.findall(r"[A-Za-z_]\w*", text))
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef):
                classes[node.name] += 1
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                functions[node.name] += 1
    return classes, functions, words


def main(checkout: Path) -> None:
    found = modules(checkout)
    arrows = graph(found)
    sizes = {path: len(path.read_text("utf-8").splitlines()) for path in found.values()}
    scripts = [path for folder in ("comborun", "scripts", *LINKED) for path in (checkout / folder).rglob("*.sh")]
    scripts = sorted({path.resolve() for path in scripts})
    rooms: dict[str, list[int]] = {}
    for path, lines in sizes.items():
        rooms.setdefault(_room(path, checkout), []).append(lines)
    for room, lines_of in sorted(rooms.items()):
        print(f"{sum(lines_of):7,} lines {len(lines_of):4} files  {room}")
    bash = sum(len(path.read_text("utf-8").splitlines()) for path in scripts)
    print(f"{sum(sizes.values()):7,} lines {len(sizes):4} files  Python of the product")
    print(f"{bash:7,} lines {len(scripts):4} files  bash of the product")
    tests = list((checkout / "tests").rglob("*.py"))
    print(f"{sum(len(path.read_text('utf-8').splitlines()) for path in tests):7,} lines {len(tests):4} files  tests")
    classes, functions, words = _definitions(found.values())
    importers = Counter(other for others in arrows.values() for other in others)
    print(f"{sum(classes.values()):7,} classes, {sum(times > 1 for times in classes.values())} names for several")
    private = {name for name in functions if name.startswith("_") and not name.startswith("__")}
    once = sum(words[name] == 2 for name in private if functions[name] == 1)
    print(f"{sum(functions.values()):7,} functions, {once} private ones with one use")
    print(f"{sum(importers[name] == 1 for name in found):7,} modules with one importer")
    print(f"{len(circles(arrows)):7,} circles")
    for circle in circles(arrows):
        print("         ", " <- ".join(circle))


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else CHECKOUT)
