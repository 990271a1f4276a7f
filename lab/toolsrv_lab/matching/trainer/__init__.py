"""The matcher's training itself: needs torch and numpy alone, so that it runs on any machine.

Nothing here knows toolsrv. ``toolsrv lab train matcher`` calls it; ``toolsrv lab export samples``
writes it beside its data, and there it is a program: ``python -m trainer --out RUN``.
"""
