"""The dispatcher: one process for each run, which starts sessions and decides what follows from their ends."""

MOVES = "moves"
"""what a dispatcher is started for, if it is not for a person: sessions that have come from another host"""
