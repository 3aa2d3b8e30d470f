"""`rlprof top`: the terminal dashboard."""
