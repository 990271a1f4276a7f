"""How a conversation is written for a model: one module per format."""
