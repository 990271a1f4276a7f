"""From a task to an answer: engines, conversation formats, tree search and API calls.

Imports ``toolsrv_registry`` and ``toolsrv_catalogs`` only.
"""
