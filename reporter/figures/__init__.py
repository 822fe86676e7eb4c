"""The figures of the report and the page."""
