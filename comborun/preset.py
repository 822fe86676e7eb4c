"""Where presets are found: in the user's own folder, among those that come with comborun, or beside a grid file."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from comborun.errors import UserError
from comborun.text import did_you_mean

SHIPPED = Path(__file__).with_name("presets")
SUFFIX = ".yaml"


@dataclass(frozen=True)
class PresetText:
    """A preset as it was found; what stands in it is read by comborun.grid."""

    name: str
    file: str
    """as people shall see it"""
    text: str

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.text.encode("utf-8", "surrogatepass")).hexdigest()


def own_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Where the user's own presets are; one of them comes before a shipped one of the same name."""
    config = environment.get("XDG_CONFIG_HOME", "")
    return (Path(config) if config.startswith("/") else Path.home() / ".config") / "comborun" / "presets"


def known_presets() -> Mapping[str, Path]:
    """Name -> file of every preset that a grid can name, in the order of their names."""
    found = {path.stem: path for folder in (SHIPPED, own_folder()) for path in folder.glob(f"*{SUFFIX}")}
    return dict(sorted(found.items()))


def find_preset(wanted: str, beside: Path) -> PresetText:
    """The preset of that name, or the file at that path, relative to the folder `beside`. Raises UserError."""
    if "/" in wanted or wanted.endswith((SUFFIX, ".yml")):
        path = beside / Path(wanted).expanduser()
        return PresetText(path.stem, str(path), _text(path))
    known = known_presets()
    if wanted not in known:
        hint = did_you_mean(wanted, known) or "`combo presets` lists them; a file of yours is named by its path"
        raise UserError(f"there is no preset `{wanted}`", hint)
    path = known[wanted]
    shown = f"comborun/presets/{path.name}" if path.parent == SHIPPED else str(path)
    return PresetText(wanted, shown, _text(path))


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except FileNotFoundError:
        raise UserError(f"there is no preset file {path}", "a path is read from the grid file's folder") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not UTF-8 text: byte {error.start}", "save it as UTF-8") from None
    except OSError as error:
        raise UserError(f"{path} can't be read: {error.strerror}", "") from None
