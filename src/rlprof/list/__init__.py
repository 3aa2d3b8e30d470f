"""`rlprof list`: which sessions are there?"""
