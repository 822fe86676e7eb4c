"""The report: from records to a summary, and from the summary to files. Heavy libraries are imported on use."""
