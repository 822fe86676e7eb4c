"""Watching a run: the probe, the statuses, the live table."""
