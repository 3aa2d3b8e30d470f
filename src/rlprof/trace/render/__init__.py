"""Torch traces for people and programs: one output format per file."""
