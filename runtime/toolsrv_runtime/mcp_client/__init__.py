"""Other MCP servers, whose tools are APIs here: kept connections to them, and calls of tools."""
