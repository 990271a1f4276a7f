"""Records of the store: catalogs, tools, documents, and the terms of an API's provider.

All are frozen. ``Terms`` reads ToolBench's ``pricing`` and ``score``: price, success rate, latency
and popularity. Knows no database.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict

from toolsrv_registry.api import Api


class Changes(BaseModel):
    """What putting a catalog changed: API ids, each in the catalog's order.

    ``changed`` lists the APIs whose text is new; when they are held back it waits to be accepted.
    """

    model_config = ConfigDict(frozen=True)

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    unchanged: int = 0


class Origin(BaseModel):
    """Where a published file came from, and under which licence.

    ``address`` is a repository of a hub, a URL or a path; ``revision`` and ``licence`` are ``""``
    where they are unknown. ``size_bytes`` and ``sha256`` are those of the file that was read.
    """

    model_config = ConfigDict(frozen=True)

    title: str
    address: str
    file: str
    revision: str = ""
    size_bytes: int
    sha256: str
    licence: str = ""


class ImportOptions(BaseModel):
    """How a catalog was imported, so that its source can be read again in the same way.

    ``place`` is what was named: a path, a URL, a published short name or ``mcp:NAME``; ``file``
    the local file given for a short name, ``sha256`` the digest it is held to, ``within`` the
    folder that alone is read. The rest are the options of ``read_catalog``. Holds no secret.
    """

    model_config = ConfigDict(frozen=True)

    place: str = ""
    file: str = ""
    sha256: str = ""
    within: str = ""
    category: str | None = None
    server: str | None = None
    variables: dict[str, str] = {}
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()


class CatalogEntry(BaseModel):
    """A catalog: ``changed`` counts the APIs with a new text that waits to be accepted.

    ``source`` says where it was read from, ``""`` for a catalog that ships; ``origin`` is kept of
    one that was pulled; ``options`` say how it was imported.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    enabled: bool
    tools: int
    apis: int
    changed: int
    content_hash: str
    updated_at: str
    source: str = ""
    origin: Origin | None = None
    options: ImportOptions = ImportOptions()


class Pending(BaseModel):
    """An API whose text changed: ``served`` is the accepted one, ``new`` waits."""

    model_config = ConfigDict(frozen=True)

    served: Api
    new: Api


class ToolEntry(BaseModel):
    """A tool of a catalog; ``key`` is its standardised name, ``apis`` their number."""

    model_config = ConfigDict(frozen=True)

    catalog: str
    category: str
    key: str
    name: str
    description: str
    home_url: str
    host: str
    apis: int


class StoreStats(BaseModel):
    """Totals over the enabled catalogs; ``bytes`` is the size of the file with its log."""

    model_config = ConfigDict(frozen=True)

    catalogs: int
    tools: int
    apis: int
    categories: int
    bytes: int


class Document(BaseModel):
    """One text of the vector index and where its APIs belong."""

    model_config = ConfigDict(frozen=True)

    hash: str
    text: str
    category: str
    tool_key: str


class IndexPointer(BaseModel):
    """The finished vector collection of an encoder at a place, with its files' hashes."""

    model_config = ConfigDict(frozen=True)

    place: str
    encoder: str
    encoder_digest: str
    collection: str
    content_hash: str
    documents: int
    built_at: str
    files: dict[str, str] = {}


Pricing = Literal["", "FREE", "FREEMIUM", "PAID"]
_KNOWN = {one: one for one in get_args(Pricing)}
_PRICE_ORDER: dict[Pricing, int] = {"FREE": 0, "": 1, "FREEMIUM": 1, "PAID": 2}


class Terms(BaseModel):
    """The terms of a tool's APIs; empty and None where its source says nothing.

    ``FREEMIUM`` has a free plan and paid ones, ``PAID`` paid ones only. ``service_percent`` and
    ``success_percent`` are shares of calls in [0, 100], ``latency_ms`` is a mean in milliseconds,
    ``popularity`` lies in [0, 10].
    """

    model_config = ConfigDict(frozen=True)

    pricing: Pricing = ""
    service_percent: int | float | None = None
    success_percent: int | float | None = None
    latency_ms: int | float | None = None
    popularity: int | float | None = None

    @property
    def paid(self) -> bool:
        """Whether every plan costs money."""
        return self.pricing == "PAID"

    @property
    def order(self) -> tuple[float, ...]:
        """The place among APIs that fit equally well, smaller first: price, success, speed, fame.

        What is unknown stands in the middle.
        """
        success = 50.0 if self.success_percent is None else self.success_percent
        latency = 1_000.0 if self.latency_ms is None else self.latency_ms
        popularity = 5.0 if self.popularity is None else self.popularity
        # In steps: 97 and 98 per cent, 300 and 310 milliseconds, tell nothing apart.
        return (
            _PRICE_ORDER[self.pricing],
            -round(success / 10),
            round(math.log2(max(latency, 1.0))),
            -popularity,
        )

    @property
    def words(self) -> str:
        """The terms in a few words: ``FREEMIUM, 98 % succeed, 786 ms, popularity 7.9``."""
        parts = [str(self.pricing)] if self.pricing else []
        if self.success_percent is not None:
            parts.append(f"{self.success_percent:g} % succeed")
        if self.service_percent is not None:
            parts.append(f"{self.service_percent:g} % service level")
        if self.latency_ms is not None:
            parts.append(f"{self.latency_ms:g} ms")
        if self.popularity is not None:
            parts.append(f"popularity {self.popularity:g}")
        return ", ".join(parts)


def read_terms(pricing: Any, score: Any) -> Terms:
    """Return the terms that a tool file states; whatever cannot be read says nothing."""
    said = pricing.strip().upper() if isinstance(pricing, str) else ""
    numbers = score if isinstance(score, Mapping) else {}
    return Terms(
        pricing=_KNOWN.get(said, ""),
        service_percent=_number(numbers.get("avgServiceLevel"), 100),
        success_percent=_number(numbers.get("avgSuccessRate"), 100),
        latency_ms=_number(numbers.get("avgLatency"), 1e9),
        popularity=_number(numbers.get("popularityScore"), 10),
    )


def stored_terms(pricing: str | None, score: str | None) -> Terms:
    """Return the terms that columns hold: the texts of two values inside a tool's JSON."""
    try:
        numbers = json.loads(score) if score else None
    except ValueError:
        numbers = None
    return read_terms(pricing, numbers)


def _number(value: Any, most: float) -> int | float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    if not 0 <= number <= most:
        return None
    return int(number) if number.is_integer() else number
