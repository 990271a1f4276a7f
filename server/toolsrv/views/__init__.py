"""What the CLI and the MCP server show of APIs, searches and runs, as frozen models."""
