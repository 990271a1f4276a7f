"""ToolBench's answer files: what a solve came to, as that project stores it."""
