"""State of ``toolsrv setup``: the machine, completed steps, and their undo."""
