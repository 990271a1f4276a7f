"""The agent: one solve's conversation with any chat model, from candidates to a checked answer."""
