"""Some steps of a training, recorded with torch.profiler."""
