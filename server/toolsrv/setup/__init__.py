"""The first five minutes: what this machine has, what is set up on it, and how to undo that."""
