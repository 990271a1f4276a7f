"""The MCP server: six tools over the workbench, on stdio or loopback HTTP."""
