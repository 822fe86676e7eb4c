"""Hosts over ssh: two transports, one contract."""
