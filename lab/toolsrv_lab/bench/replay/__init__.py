"""One recorded tree, written again by different ways to run a model, each in its own process."""
