"""The supervisor: one process for each attempt, from its claim to its end."""
