"""Comparisons of policies: pairing, tests, claims, early stopping, power and failure kinds."""
