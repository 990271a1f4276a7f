"""What words of a task mean: numbers, dates, units, places, directions. Nothing here asks a model."""
