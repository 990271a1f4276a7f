"""Command line of the generator."""

from __future__ import annotations

from toolsrv_lab.conversations.services_b import main

main()
