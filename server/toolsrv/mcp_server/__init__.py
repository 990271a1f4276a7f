"""The MCP server: eight tools over the workbench, on stdio or loopback HTTP."""
