"""One module per offline tool, named as the tool's description file; each owns its library.

Imported one by one on a tool's first request, never together.
"""
