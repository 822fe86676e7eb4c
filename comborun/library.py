"""Where the bash library is: inside the installed package, or beside it in a checkout."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def scripts_directory() -> Path:
    """The folder that holds `lib`: `scripts/` of a checkout, or what the wheel has of it."""
    inside = _PACKAGE / "_scripts"
    return inside if inside.is_dir() else _PACKAGE.parent / "scripts"


def library_files() -> dict[str, str]:
    """File name -> text of `scripts/lib`, which travels with every run; sorted by name."""
    folder = scripts_directory() / "lib"
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.sh"))}


def script_text(path: str) -> str:
    """The text of one file below `scripts/`."""
    return (scripts_directory() / path).read_text(encoding="utf-8")
