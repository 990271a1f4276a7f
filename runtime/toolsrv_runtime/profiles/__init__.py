"""Model profiles: the built-in ones, the user's own, and which one a model gets."""
