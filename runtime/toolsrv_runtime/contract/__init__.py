"""Ports and plain data that the parts of the runtime share; imports nothing above registry."""
