"""What commands and Python programs call: to launch a run, to open one, and what can be done with it."""
