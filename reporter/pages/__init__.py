"""The report's sections and their words, in each format."""
