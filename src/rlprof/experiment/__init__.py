"""Runs trainings, or parts of them, to measure them."""
