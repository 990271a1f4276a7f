"""ToolBench reproduction: ToolLLaMA's format, reference mode, answer files, StableToolBench's cache.

Modules are imported directly; nothing is re-exported.
"""
