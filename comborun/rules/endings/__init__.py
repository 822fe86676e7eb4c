"""How attempts end: classes of failures, retries, the breaker, progress."""
