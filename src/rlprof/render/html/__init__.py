"""The parts of an HTML page that works offline."""
