"""The tables of the ToolLLM paper, from our own runs, with its own numbers beside them."""
