"""From a text to a ranked list: query, recall, signals, order."""
