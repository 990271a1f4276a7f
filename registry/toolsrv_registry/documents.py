"""What of an API is searched: the text that is encoded, and the columns of the word index.

Pure functions of an ``Api``. The store keeps what they return; a change here needs a migration
that rebuilds those columns (``schema.py``).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import NamedTuple

from toolsrv_registry.api import Api
from toolsrv_registry.words import words

NO_CATEGORY = "Other"

_DESCRIPTION_LIMIT = 600
_TOOL_DESCRIPTION_LIMIT = 300
_PARAMETERS_LIMIT = 600


class Columns(NamedTuple):
    """The fields of the word index, as space-separated lower-case words."""

    name: str
    tool: str
    category: str
    description: str
    about_tool: str
    parameters: str


def document_text(api: Api) -> str:
    """Return the text that stands for an API in the vector index.

    Category, tool and name come first, because an encoder cuts the end of a long text. "Other", the
    category of what has none, would say something that is true of no API.
    """
    category = "" if api.category == NO_CATEGORY else f"{api.category.replace('_', ' ')}: "
    parts = [f"{category}{api.tool}: {_spoken(api.name)}."]
    if api.description.strip():
        parts.append(api.description.strip()[:_DESCRIPTION_LIMIT])
    if api.tool_description.strip():
        parts.append(api.tool_description.strip()[:_TOOL_DESCRIPTION_LIMIT])
    if api.parameters:
        parts.append("Parameters: " + ", ".join(_spoken(p.name) for p in api.parameters))
    return " ".join(parts)


def document_hash(text: str) -> str:
    """Return the key of a document text in the vector index (32 hex digits)."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def contents_hash(hashes: Iterable[str]) -> str:
    """Return a hash over the document hashes of an index; their order and repeats do not count."""
    return hashlib.sha256("\n".join(sorted(set(hashes))).encode()).hexdigest()


def columns(api: Api) -> Columns:
    """Return the fields of the word index for an API."""
    parameters = " ".join(f"{p.name} {p.description}" for p in api.parameters)
    return Columns(
        name=_spoken(api.name),
        tool=_spoken(api.tool),
        category=_spoken(api.category),
        description=_spoken(api.description[: 4 * _DESCRIPTION_LIMIT]),
        about_tool=_spoken(api.tool_description[:_TOOL_DESCRIPTION_LIMIT]),
        parameters=_spoken(parameters[: 4 * _PARAMETERS_LIMIT]),
    )


def content_hash(api: Api) -> str:
    """Return a hash over every field of an API: what is pinned when a catalog is accepted."""
    canonical = json.dumps(api.model_dump(mode="json"), sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(canonical.encode()).hexdigest()


def _spoken(text: str) -> str:
    return " ".join(words(text))
