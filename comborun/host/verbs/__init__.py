"""One module for each verb that only looks, writes or steers."""
