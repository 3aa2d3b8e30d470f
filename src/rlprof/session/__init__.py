"""One run in one folder: schema, writer and reader."""
