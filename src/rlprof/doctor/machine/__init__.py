"""Measurements of a machine for `rlprof doctor`."""
