"""Analyses of a trace: one question per file."""
