"""The ToolLLM paper's quality filter: call APIs, classify the replies, store the verdicts."""
