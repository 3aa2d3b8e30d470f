"""What a machine can do, and how it is set up: measured for `rlprof doctor`."""
