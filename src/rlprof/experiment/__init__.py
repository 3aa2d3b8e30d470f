"""Runs trainings, or parts of them, under control to measure them."""
