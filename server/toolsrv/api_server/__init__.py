"""API server for research code: the protocols of ToolBench and StableToolBench."""
