"""What the views of a running training share: frames, stacks, and alerts. They only read the session."""
