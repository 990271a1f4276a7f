"""Media types as documents, requests and responses name them. Pure."""

from __future__ import annotations

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"


def bare(media: str) -> str:
    """Return a media type without its parameters, in lower case."""
    return media.partition(";")[0].strip().lower()


def is_json(media: str) -> bool:
    """Whether a media type is JSON, with whatever parameters."""
    return bare(media).endswith(("/json", "+json"))
