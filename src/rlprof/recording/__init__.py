"""One profiled run, from its start to the files it leaves."""
