"""What fits on a host: the ledger, placement, order."""
