"""What is said of torch traces: one output a file."""
