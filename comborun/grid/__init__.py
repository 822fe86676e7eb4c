"""The grid file: YAML with places, a typed model, every mistake at once."""

from comborun.grid.combos import Axis, Combo
from comborun.grid.file import Grid, load_grid, parse_grid
from comborun.grid.layering import Preset, read_preset
from comborun.grid.preset_starter import preset_starter, settings_text
from comborun.grid.schema import grid_schema, schema_text
from comborun.grid.settings import GridLimits, Notifying, Settings, Shipped
from comborun.grid.starter import starter_grid

__all__ = [
    "Axis",
    "Combo",
    "Grid",
    "GridLimits",
    "Notifying",
    "Preset",
    "Settings",
    "Shipped",
    "grid_schema",
    "load_grid",
    "parse_grid",
    "preset_starter",
    "read_preset",
    "schema_text",
    "settings_text",
    "starter_grid",
]
