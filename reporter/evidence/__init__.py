"""What the rows of each policy and environment can show, settled before any test."""
