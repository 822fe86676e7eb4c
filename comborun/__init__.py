"""comborun: run a policy x environment evaluation grid on a shared GPU box, and report it honestly."""

__version__ = "0.1.0"
