"""The report: from records to a summary, and from the summary to files. Heavy libraries are imported on use."""

from comborun.reporter.report import report_between, report_folder, report_run, write_report

__all__ = ["report_between", "report_folder", "report_run", "write_report"]
