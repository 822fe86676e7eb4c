"""The files of a run directory as texts: scripts, records, jobs. Pure."""
