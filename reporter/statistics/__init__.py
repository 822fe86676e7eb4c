"""Statistics: tests, intervals and corrections. Pure; numpy and scipy are imported on the first call."""
