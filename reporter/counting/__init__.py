"""What one combo, and all of them, come to: counts, metrics, times, ends."""
