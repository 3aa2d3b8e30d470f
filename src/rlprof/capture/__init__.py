"""Traces and profiles of a recorded training: torch.profiler, cProfile and stack samples, of chosen steps or phases."""
