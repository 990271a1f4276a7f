"""huggingface_hub as we use it: it asks for nothing but models and hands on what came at once."""

from __future__ import annotations

PIECE_BYTES = 64 * 1024
"""So much at most is lost where a connection breaks."""


def set_up() -> None:
    """Set it up for this process; once or often."""
    from huggingface_hub import constants  # noqa: PLC0415 - heavy

    # What HF_HUB_DISABLE_TELEMETRY sets. Else each process tells which programs run it, and asks
    # the hub before its first request which there are: one damaged answer, which is kept for a
    # day, makes every request after it fail.
    constants.HF_HUB_DISABLE_TELEMETRY = True
    constants.DOWNLOAD_CHUNK_SIZE = PIECE_BYTES
