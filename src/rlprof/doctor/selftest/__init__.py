"""`rlprof selftest`: records, analyses and reports a training whose times and counts are known."""
