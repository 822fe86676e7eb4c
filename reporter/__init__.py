"""Telling: records to a summary, and the summary to files. Heavy libraries are imported by the calls that need them."""

from comborun.reporter.report import report_between, report_folder, report_run, write_report

__all__ = ["report_between", "report_folder", "report_run", "write_report"]
