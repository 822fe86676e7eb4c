"""A status for eyes and for programs: the table, lines, JSON."""
