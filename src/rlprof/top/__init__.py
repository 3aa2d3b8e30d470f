"""The terminal dashboard: what a training does right now. It only reads the session."""
