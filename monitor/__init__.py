"""Seeing: one probe of a run, its statuses, the live table."""
