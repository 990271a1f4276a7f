"""huggingface_hub as we use it: it asks for nothing but models and hands on what came at once."""

from __future__ import annotations

import os

from toolsrv_runtime.hub.errors import HubError, proxies

PIECE_BYTES = 64 * 1024
"""So much at most is lost where a connection breaks."""


def set_up() -> None:
    """Set it up for this process; once or often.

    Raises:
        HubError: The proxy that the environment names cannot be used.
    """
    from huggingface_hub import constants  # noqa: PLC0415 - heavy

    _check_proxies()

    # What HF_HUB_DISABLE_TELEMETRY sets. Else each process tells which programs run it, and asks
    # the hub before its first request which there are: one damaged answer, which is kept for a
    # day, makes every request after it fail.
    constants.HF_HUB_DISABLE_TELEMETRY = True
    constants.DOWNLOAD_CHUNK_SIZE = PIECE_BYTES


def _check_proxies() -> None:
    """Refuse proxies that no client can be made for, before huggingface_hub makes one."""
    import httpx2  # noqa: PLC0415 - what huggingface_hub talks with

    if not proxies(os.environ):
        return
    try:
        httpx2.Client().close()
    except ImportError:
        raise HubError(
            f"a SOCKS proxy is set ({proxies(os.environ)}), and the package socksio is not "
            "installed",
            hint="pip install socksio, or set an HTTP proxy, or unset the variable",
        ) from None
    except (ValueError, httpx2.InvalidURL):  # its message may hold a password
        raise HubError(
            f"the proxy of the environment cannot be used ({proxies(os.environ)})",
            hint="write it as http://HOST:PORT or socks5://HOST:PORT, or unset the variable",
        ) from None
