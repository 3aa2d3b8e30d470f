"""How things look: tables, names, and the parts of an HTML page."""
