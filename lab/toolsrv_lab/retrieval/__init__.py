"""The API retriever: training text, training, export, evaluation (ToolLLM sections 2.2 and 3.1)."""
