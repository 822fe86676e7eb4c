"""`python -m comborun` is `combo`."""

from comborun.cli import main

main()
