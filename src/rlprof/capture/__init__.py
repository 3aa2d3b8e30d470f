"""What is measured beside spans: the machine, and how the system is doing while a training runs."""
