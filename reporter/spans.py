"""Sets of episode indices, as reports use them: comborun/spans.py, which the planner of changed grids uses too."""

from comborun.spans import Spans, describe, gaps, size, spans, union, within

__all__ = ["Spans", "describe", "gaps", "size", "spans", "union", "within"]
