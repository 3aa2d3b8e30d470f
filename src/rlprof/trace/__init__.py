"""Traces of torch.profiler, of Kineto's whole history, in columns."""
