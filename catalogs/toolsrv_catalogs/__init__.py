"""Where APIs come from: readers of catalog formats and the offline catalog that ships.

Imports ``toolsrv_registry`` only.
"""
