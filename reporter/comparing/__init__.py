"""One policy against another: pairs, families, stopping early, two runs, a canary."""
