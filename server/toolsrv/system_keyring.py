"""The system's keyring, where there is one."""

from __future__ import annotations

from typing import Any

SERVICE = "toolsrv"
"""The service that secrets are kept under."""


def system_keyring() -> Any:
    """Return the ``keyring`` module where the system has a keyring, else None."""
    import keyring

    return keyring if keyring.get_keyring().priority > 0 else None
