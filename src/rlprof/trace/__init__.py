"""`rlprof trace`: reads and analyses traces of every version of torch.profiler."""
