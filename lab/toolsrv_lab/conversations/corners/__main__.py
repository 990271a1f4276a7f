"""Command line of the generator."""

from __future__ import annotations

from toolsrv_lab.conversations.corners import main

main()
