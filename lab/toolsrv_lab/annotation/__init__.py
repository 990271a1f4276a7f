"""Solution paths: tasks solved by tree search with a teacher, kept as ToolBench's answer files."""
