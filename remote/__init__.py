"""Effects on the host: the transports, launching, stopping."""
