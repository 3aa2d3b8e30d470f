"""One run in one folder: the schema, who writes it and who reads it."""
