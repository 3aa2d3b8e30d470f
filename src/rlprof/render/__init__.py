"""Tables, names, figures and the parts of an HTML page."""
