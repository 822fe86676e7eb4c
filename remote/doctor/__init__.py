"""What on a host would hurt, what it would cost, and the fix."""
