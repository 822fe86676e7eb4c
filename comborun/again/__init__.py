"""A run that goes on, or runs once more: amended, resumed, tried with a few episodes, checked alone."""
