"""Changes of an existing run: amended, resumed, tried with a few episodes, repeated as a recheck."""
