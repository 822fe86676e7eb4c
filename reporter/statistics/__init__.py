"""Statistics: tests, intervals and corrections. Pure; numpy and scipy are imported on the first call."""

from comborun.reporter.statistics.proportion import CONFIDENCE, Proportion, clopper_pearson, proportion

__all__ = ["CONFIDENCE", "Proportion", "clopper_pearson", "proportion"]
