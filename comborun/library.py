"""Where the bash library is: inside the installed package, or beside it in a checkout."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def scripts_directory() -> Path:
    """The folder that holds `lib`: `scripts/` of a checkout, or what the wheel has of it."""
    inside = _PACKAGE / "_scripts"
    return inside if inside.is_dir() else _PACKAGE.parent / "scripts"


def library_files() -> dict[str, str]:
    """Path below `scripts/lib` -> text of the library that travels with every run; sorted by path."""
    folder = scripts_directory() / "lib"
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*.sh")}
    return {name: files[name].read_text(encoding="utf-8") for name in sorted(files)}


def script_text(path: str) -> str:
    """The text of one file below `scripts/`."""
    return (scripts_directory() / path).read_text(encoding="utf-8")
