"""One recorded run, from its start to its complete session."""
