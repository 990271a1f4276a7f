"""From an API and arguments to a response with its provenance."""
