"""`rlprof whatif`: what would it bring if operations were faster?"""
