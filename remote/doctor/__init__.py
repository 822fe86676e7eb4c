"""Problems on a host, what each would cost, and the fix."""
