"""`rlprof compare`: did it really get faster, and which part?"""
