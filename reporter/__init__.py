"""Telling: records to a summary, and the summary to files."""
