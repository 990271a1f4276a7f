"""MCP clients on this machine, and toolsrv's entry in their own configuration files."""
