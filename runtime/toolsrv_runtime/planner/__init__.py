"""The rule-based path of the compact model: subtasks, functions and arguments from a task's words.

Frozen: no rule is added here. Used for models of the format ``compact`` alone.
"""
