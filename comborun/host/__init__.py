"""The program that travels with a run. Standard library, Python 3.8; imports comborun.rules and comborun.words."""
