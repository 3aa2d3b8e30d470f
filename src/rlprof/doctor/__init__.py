"""`rlprof doctor` and `rlprof selftest`: what slows trainings down on this machine, and does rlprof work here?"""
