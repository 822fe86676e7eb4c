"""The grid file: YAML with places, typed keys, every mistake at once."""

from comborun.grid.combos import Combo
from comborun.grid.file import Grid, load_grid, parse_grid
from comborun.grid.keys.axes import AxisEntry
from comborun.grid.keys.grid_file import SettingKeys, grid_schema, schema_text
from comborun.grid.presets import Preset, find_preset, known_presets, preset_starter, read_preset, starter_grid

__all__ = [
    "AxisEntry",
    "Combo",
    "Grid",
    "Preset",
    "SettingKeys",
    "find_preset",
    "grid_schema",
    "known_presets",
    "load_grid",
    "parse_grid",
    "preset_starter",
    "read_preset",
    "schema_text",
    "starter_grid",
]
