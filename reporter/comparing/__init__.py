"""Comparisons of policies: pairing, tests, claims, early stopping, power, two runs, and the canary."""
