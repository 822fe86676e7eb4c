"""The dispatcher: one process for each run, which starts sessions and decides what follows from their ends."""
