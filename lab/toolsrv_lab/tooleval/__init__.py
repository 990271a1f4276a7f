"""ToolBench's evaluation: the form in which it compares answers."""
