"""`rlprof doctor` and `rlprof selftest`: is this machine, is this installation set up right?"""
