"""toolsrv as the API server of other people's research code: ToolBench's and StableToolBench's wire."""
