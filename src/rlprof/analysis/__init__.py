"""Answers computed from recorded data, one question per file. Nothing here prints."""
