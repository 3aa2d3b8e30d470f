"""The report of a session, one output format per file."""
