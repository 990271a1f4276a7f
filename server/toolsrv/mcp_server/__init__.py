"""The MCP server: seven tools over the workbench, on stdio or loopback HTTP."""
