"""Tree search over API calls. Pure: yields effects and receives actions and observations."""
