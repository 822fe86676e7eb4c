"""Reads the result files of a directory."""
