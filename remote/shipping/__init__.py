"""The user's own files on their way to the host."""
