"""From answers to what people and tools read: one output a file."""
