"""The grid file: YAML with places, a typed model, every mistake at once."""

from comborun.grid.combos import Axis, Combo
from comborun.grid.file import Grid, load_grid, parse_grid
from comborun.grid.schema import grid_schema, schema_text
from comborun.grid.settings import GridLimits, Settings, Shipped
from comborun.grid.starter import starter_grid

__all__ = [
    "Axis",
    "Combo",
    "Grid",
    "GridLimits",
    "Settings",
    "Shipped",
    "grid_schema",
    "load_grid",
    "parse_grid",
    "schema_text",
    "starter_grid",
]
