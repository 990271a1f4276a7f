"""Frozen models of APIs, searches and runs, shared by ``--json`` and MCP results."""
