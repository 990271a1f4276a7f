"""What the store tells about its contents: small frozen records, no behaviour."""

from __future__ import annotations

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
