"""Counts, metrics, times and endings of each combo, and the quality of the data."""
