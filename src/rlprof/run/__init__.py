"""Starts rlprof in a training that was not edited, and in the processes it starts."""
