"""Why something runs, waits or has ended, in words and with what would go on."""
