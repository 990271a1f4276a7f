"""toolsrv: command line, MCP server, runs and settings."""

__version__ = "0.2.0"
