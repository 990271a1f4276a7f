"""Command line of the generator."""

from __future__ import annotations

from toolsrv_lab.conversations.needs_episodes import main

main()
