"""Reads the result files of a directory, and finds what is missing in them."""
