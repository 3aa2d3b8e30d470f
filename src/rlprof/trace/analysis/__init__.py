"""What a trace says: one question a file."""
